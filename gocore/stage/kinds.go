package stage

import (
	"cmp"
	"slices"
)

// kinds are the sets of attributes that prims carry. A scene has few: prims that carry the same are of one kind, so a prim is
// a number here, and what it carries is found without a look at other attributes. A kind goes with its last prim.
type kinds struct {
	of     []uint32 // path index -> kind
	list   []kind   // kind 0 carries nothing
	free   []uint32 // numbers of kinds that have gone
	byHash map[uint64][]uint32
}

type kind struct {
	attributes []*attribute // by name
	hash       uint64       // of their names, in any order
	prims      int
}

// carries reports whether a prim carries anything.
func (k *kinds) carries(path uint32) bool { return int(path) < len(k.of) && k.of[path] != 0 }

// reach makes room for a path.
func (k *kinds) reach(path uint32) {
	if missing := int(path) + 1 - len(k.of); missing > 0 {
		k.of = append(k.of, make([]uint32, missing)...)
	}
}

// change gives an attribute to prims, or takes it from them, and calls visit for each with its kinds before and after.
func (k *kinds) change(a *attribute, paths []uint32, carried bool, visit func(path, before, after uint32)) {
	if len(paths) == 0 {
		return
	}
	k.reach(slices.Max(paths))
	if len(k.list) == 0 {
		k.list, k.byHash = make([]kind, 1), map[uint64][]uint32{}
	}
	from, to := vacant, vacant // neighbours are mostly of one kind
	for _, path := range paths {
		before := k.of[path]
		if before != from {
			from, to = before, k.next(before, a, carried)
		}
		if from == to {
			from = vacant // the kind itself may have changed
		}
		k.move(path, before, to)
		visit(path, before, to)
	}
}

// move makes a prim one of another kind.
func (k *kinds) move(path, before, after uint32) {
	if before == after {
		return
	}
	k.of[path] = after
	if after != 0 {
		k.list[after].prims++
	}
	if before == 0 {
		return
	}
	if k.list[before].prims--; k.list[before].prims == 0 {
		k.forget(before)
		k.list[before].attributes = nil
		k.free = append(k.free, before)
	}
}

// next returns the kind that carries one attribute more than another, or one less. The only prim of its kind takes the
// kind along.
func (k *kinds) next(from uint32, a *attribute, carried bool) uint32 {
	at, has := k.list[from].find(a)
	if has == carried {
		return from
	}
	if !carried && len(k.list[from].attributes) == 1 {
		return 0
	}
	hash := k.list[from].hash ^ spread(uint64(a.name))
	for _, number := range k.byHash[hash] {
		if k.list[number].is(k.list[from].attributes, at, a, carried) {
			return number
		}
	}
	if from != 0 && k.list[from].prims == 1 {
		k.forget(from)
		k.list[from].attributes = changed(k.list[from].attributes, at, a, carried)
		k.enter(from, hash)
		return from
	}
	made := kind{attributes: changed(slices.Clone(k.list[from].attributes), at, a, carried)}
	number := uint32(len(k.list))
	if last := len(k.free) - 1; last >= 0 {
		number, k.free = k.free[last], k.free[:last]
		k.list[number] = made
	} else {
		k.list = append(k.list, made)
	}
	k.enter(number, hash)
	return number
}

func changed(attributes []*attribute, at int, a *attribute, carried bool) []*attribute {
	if carried {
		return slices.Insert(attributes, at, a)
	}
	return slices.Delete(attributes, at, at+1)
}

func (k *kinds) enter(number uint32, hash uint64) {
	k.list[number].hash = hash
	k.byHash[hash] = append(k.byHash[hash], number)
}

func (k *kinds) forget(number uint32) {
	hash := k.list[number].hash
	same := slices.DeleteFunc(k.byHash[hash], func(n uint32) bool { return n == number })
	if k.byHash[hash] = same; len(same) == 0 {
		delete(k.byHash, hash)
	}
}

// find returns the place of an attribute, or the one that it would have.
func (k *kind) find(a *attribute) (at int, has bool) {
	return slices.BinarySearchFunc(k.attributes, a, func(x, y *attribute) int { return cmp.Compare(x.name, y.name) })
}

// is reports whether a kind has the attributes of another and one more at a place, or all but the one at that place.
func (k *kind) is(others []*attribute, at int, a *attribute, more bool) bool {
	mine := k.attributes
	if !more {
		mine, others = others, mine
	}
	return len(mine) == len(others)+1 && mine[at] == a && slices.Equal(mine[:at], others[:at]) && slices.Equal(mine[at+1:], others[at:])
}

// spread mixes the bits of a number (the finaliser of splitmix64).
func spread(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// carried returns the attributes that any of the prims carries, by name.
func (k *kinds) carried(paths []uint32) (found []*attribute) {
	seen, last := map[uint32]struct{}{}, uint32(0)
	for _, path := range paths {
		if int(path) >= len(k.of) || k.of[path] == last {
			continue
		}
		last = k.of[path]
		if _, again := seen[last]; again || last == 0 {
			continue
		}
		seen[last] = struct{}{}
		found = append(found, k.list[last].attributes...)
	}
	if len(seen) > 1 {
		found = sorted(found)
	}
	return found
}

// sorted puts attributes into the order of their names, each once.
func sorted(attributes []*attribute) []*attribute {
	slices.SortFunc(attributes, func(a, b *attribute) int { return cmp.Compare(a.name, b.name) })
	return slices.Compact(attributes)
}
