package prims

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// kinds are the sets of attributes that prims carry. A scene has few of them. Prims that carry the same attributes are of one
// kind: for each prim there is the number of its kind, and what a prim carries is found without a look at all attributes. A kind
// ends with its last prim.
type kinds struct {
	of     []uint32 // path index -> number of the kind
	list   []kind   // by number; kind 0 carries nothing
	free   []uint32 // numbers that are not in use
	byHash map[uint64][]uint32
}

type kind struct {
	attributes []pathdict.Token // their names, ascending
	hash       uint64           // of the names, in any order
	prims      int              // how many prims are of this kind
}

// carries reports whether a prim carries anything.
func (k *kinds) carries(path uint32) bool { return int(path) < len(k.of) && k.of[path] != 0 }

// reach makes room for a path.
func (k *kinds) reach(path uint32) {
	if missing := int(path) + 1 - len(k.of); missing > 0 {
		k.of = append(k.of, make([]uint32, missing)...)
	}
}

// change gives an attribute to prims, or takes it from them, and calls visit for neighbours in the list that were of one kind, with
// their kinds before and after.
func (k *kinds) change(name pathdict.Token, paths []uint32, carried bool, visit func(paths []uint32, before, after uint32)) {
	if len(paths) == 0 {
		return
	}
	k.reach(slices.Max(paths))
	if len(k.list) == 0 {
		k.list, k.byHash = make([]kind, 1), map[uint64][]uint32{}
	}
	for len(paths) > 0 {
		before := k.of[paths[0]]
		after, n := k.next(before, name, carried), 1
		if before != after {
			n = k.move(paths, before, after)
		}
		visit(paths[:n], before, after)
		paths = paths[n:]
	}
}

// move makes the first prims of a list, as far as they are of one kind, all of another, and returns how many they are. A prim
// that is listed twice is of the other kind when it comes again.
func (k *kinds) move(paths []uint32, before, after uint32) (n int) {
	for n < len(paths) && k.of[paths[n]] == before {
		k.of[paths[n]] = after
		n++
	}
	if after != 0 {
		k.list[after].prims += n
	}
	if before == 0 {
		return n
	}
	if k.list[before].prims -= n; k.list[before].prims == 0 {
		k.forget(before)
		k.list[before].attributes = nil
		k.free = append(k.free, before)
	}
	return n
}

// next returns the kind that carries one attribute more than another, or one less. A kind with a single prim becomes the other
// itself.
func (k *kinds) next(from uint32, name pathdict.Token, carried bool) uint32 {
	at, has := k.list[from].find(name)
	if has == carried {
		return from
	}
	if !carried && len(k.list[from].attributes) == 1 {
		return 0
	}
	hash := k.list[from].hash ^ spread(uint64(name))
	for _, number := range k.byHash[hash] {
		if k.list[number].is(k.list[from].attributes, at, name, carried) {
			return number
		}
	}
	if from != 0 && k.list[from].prims == 1 {
		k.forget(from)
		k.list[from].attributes = changed(k.list[from].attributes, at, name, carried)
		k.enter(from, hash)
		return from
	}
	made := kind{attributes: changed(slices.Clone(k.list[from].attributes), at, name, carried)}
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

// changed puts a name into the list, at that index, or takes it out.
func changed(attributes []pathdict.Token, at int, name pathdict.Token, carried bool) []pathdict.Token {
	if carried {
		return slices.Insert(attributes, at, name)
	}
	return slices.Delete(attributes, at, at+1)
}

// enter makes a kind known under the hash of its names.
func (k *kinds) enter(number uint32, hash uint64) {
	k.list[number].hash = hash
	k.byHash[hash] = append(k.byHash[hash], number)
}

// forget is the reverse of enter.
func (k *kinds) forget(number uint32) {
	hash := k.list[number].hash
	same := slices.DeleteFunc(k.byHash[hash], func(n uint32) bool { return n == number })
	if k.byHash[hash] = same; len(same) == 0 {
		delete(k.byHash, hash)
	}
}

// find returns the index of an attribute among those of the kind, or the index that it would have.
func (k *kind) find(name pathdict.Token) (at int, has bool) {
	return slices.BinarySearch(k.attributes, name)
}

// is reports whether the kind has these attributes and one more at an index, or all of these but the one at that index.
func (k *kind) is(others []pathdict.Token, at int, name pathdict.Token, more bool) bool {
	mine := k.attributes
	if !more {
		mine, others = others, mine
	}
	return len(mine) == len(others)+1 && mine[at] == name && slices.Equal(mine[:at], others[:at]) && slices.Equal(mine[at+1:], others[at:])
}

// spread mixes the bits of a number (the finaliser of splitmix64).
func spread(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// carried returns the names of the attributes that any of the prims carries, ascending.
func (k *kinds) carried(paths []uint32) (names []pathdict.Token) {
	met := bitset.New(len(k.list)) // the kinds whose names are in the list
	kinds, last := 0, uint32(0)
	for _, path := range paths {
		if int(path) >= len(k.of) || k.of[path] == last {
			continue
		}
		last = k.of[path]
		if last != 0 && !met.Has(int(last)) {
			met.Add(int(last))
			names = append(names, k.list[last].attributes...)
			kinds++
		}
	}
	if kinds > 1 {
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return names
}
