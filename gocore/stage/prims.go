package stage

import (
	"cmp"
	"math/bits"
	"slices"

	"ovstage/gocore/column"
	"ovstage/gocore/pathdict"
)

// prims knows which prims exist: those that carry an attribute in the newest executed state. Filters and derived
// attributes are answered from here.
//
// Everything is flat and indexed by dense path index, so that the garbage collector finds nothing to trace in a million
// prims. Creating or deleting one costs a few nanoseconds; writing to one that exists costs nothing.
type prims struct {
	dict    *pathdict.Dictionary
	kinds             // what each of them carries
	place   []uint32  // path index -> position in order, for prims that exist
	order   []uint32  // the prims in the order of their creation, vacant where one has gone
	gone    int       // vacant positions
	holes   selection // which they are
	changes uint64    // rises when a prim comes or goes
	family  *family   // made by the first question that needs it
}

// vacant stands for the prim at a position of order that has gone.
const vacant = ^uint32(0)

// exists reports whether a prim carries anything.
func (p *prims) exists(path uint32) bool { return p.carries(path) }

// count is the number of prims.
func (p *prims) count() int { return len(p.order) - p.gone }

// carry gives an attribute to prims, or takes it from them.
func (p *prims) carry(a *attribute, paths []uint32, carried bool) {
	p.change(a, paths, carried, func(path, before, after uint32) {
		switch {
		case before == 0 && after != 0:
			p.born(path)
		case before != 0 && after == 0:
			p.died(path)
		}
	})
}

func (p *prims) born(path uint32) {
	p.changes++
	if missing := len(p.kinds.of) - len(p.place); missing > 0 {
		p.place = append(p.place, make([]uint32, missing)...)
	}
	p.place[path] = uint32(len(p.order))
	p.order = append(p.order, path)
	if p.family != nil {
		p.family.enter(path)
	}
}

func (p *prims) died(path uint32) {
	p.changes++
	p.order[p.place[path]] = vacant
	p.holes.extend(p.place[path])
	p.holes.put(p.place[path])
	p.gone++
	if p.family != nil {
		p.family.leave(path, p)
	}
	if p.gone >= minGone && 2*p.gone > len(p.order) {
		p.closeGaps()
	}
}

// minGone is the number of vacant positions below which closing the gaps is not worth it.
const minGone = 1024

// closeGaps drops the vacant positions, which half of all deaths paid for.
func (p *prims) closeGaps() {
	p.order = slices.DeleteFunc(p.order, func(path uint32) bool { return path == vacant })
	for place, path := range p.order {
		p.place[path] = uint32(place)
	}
	p.gone, p.holes = 0, nil
}

// kin returns the tree of the prims. The first question makes it, at some 50 ns a prim; from then on it follows.
func (p *prims) kin() *family {
	if p.family == nil {
		p.family = newFamily(p.dict)
		for _, path := range p.order {
			if path != vacant {
				p.family.enter(path)
			}
		}
	}
	return p.family
}

// children appends the children of a path that are prims to a list, in the order of their creation.
func (p *prims) children(path uint32, list []uint32) []uint32 {
	from := len(list)
	p.kin().children(path, func(child uint32) {
		if p.exists(child) {
			list = append(list, child)
		}
	})
	p.sort(list[from:])
	return list
}

// exists reports whether a prim carries anything.
func (s *Stage) exists(path uint32) bool { return s.prims.exists(path) }

// count counts an attribute on prims, or off.
func (s *Stage) count(a *attribute, paths []uint32, change int) {
	if len(paths) == 0 {
		return
	}
	a.carriers.change(paths, change)
	s.prims.carry(a, paths, change > 0)
}

// appear counts an attribute on those prims of written rows that did not carry it before. A write below a delete brings
// nobody back.
func (s *Stage) appear(a *attribute, c *bound, rows column.Rows) {
	alive := c.Alive(rows, latest)
	rows.Each(func(i, row int) {
		if path := c.Path(row); alive[i] && !a.carriers.has(path) {
			s.count(a, []uint32{path}, +1)
		}
	})
}

// vanish counts an attribute off those prims of deleted rows that carried it and do not any more. A delete below a write
// takes nobody away, whether the write has the same schema or another.
func (s *Stage) vanish(a *attribute, c *bound, rows column.Rows) {
	alive := c.Alive(rows, latest)
	rewritten := func(o *bound, row int) bool { return o.Alive(column.Interval(row, row+1), latest)[0] }
	rows.Each(func(i, row int) {
		if path := c.Path(row); !alive[i] && a.carriers.has(path) && !a.elsewhere(c, uint32(row), rewritten) {
			s.count(a, []uint32{path}, -1)
		}
	})
}

// selection is a set of prims, one bit for each position in the order of creation: whatever found them in whatever order,
// they are listed in that one. It is good until the next change.
type selection []uint64

func (p *prims) nobody() selection { return make(selection, (len(p.order)+63)/64) }

func (to selection) and(other selection) {
	for i := range to {
		to[i] &= other[i]
	}
}

func (to selection) or(other selection) {
	for i := range to {
		to[i] |= other[i]
	}
}

func (to selection) without(other selection) {
	for i := range to {
		to[i] &^= other[i]
	}
}

// put selects the prim at a position.
func (to selection) put(place uint32) { to[place/64] |= 1 << (place % 64) }

// extend makes room for a position.
func (to *selection) extend(place uint32) {
	if missing := int(place/64) + 1 - len(*to); missing > 0 {
		*to = append(*to, make([]uint64, missing)...)
	}
}

// add selects a prim, if it is one.
func (p *prims) add(to selection, path uint32) {
	if p.exists(path) {
		to.put(p.place[path])
	}
}

// addEach selects prims, all of which are some. Neighbours in the list are mostly so in the order, and go there a word at a
// time.
func (p *prims) addEach(to selection, paths []uint32) {
	at, word := uint32(0), uint64(0)
	for _, path := range paths {
		place := p.place[path]
		if place/64 != at {
			if word != 0 {
				to[at] |= word
			}
			at, word = place/64, 0
		}
		word |= 1 << (place % 64)
	}
	if word != 0 {
		to[at] |= word
	}
}

// addSet is addEach for a set. Most sets of a stage are all of its prims, and cost nothing for each.
func (p *prims) addSet(to selection, paths pathSet) {
	if paths.count() == p.count() {
		p.addAll(to)
		return
	}
	paths.each(func(path uint32) { to.put(p.place[path]) })
}

// addAll selects every prim.
func (p *prims) addAll(to selection) {
	for i := range to {
		to[i] = ^uint64(0)
	}
	if rest := len(p.order) % 64; rest > 0 {
		to[len(to)-1] = 1<<rest - 1
	}
	for i, holes := range p.holes {
		to[i] &^= holes
	}
}

// where selects the prims that satisfy a condition.
func (p *prims) where(to selection, holds func(path uint32) bool) {
	for place, path := range p.order {
		if path != vacant && holds(path) {
			to.put(uint32(place))
		}
	}
}

// list returns the selected prims in the order of their creation.
func (p *prims) list(of selection) []uint32 {
	list := make([]uint32, 0, ones(of))
	for i, word := range of {
		if word == ^uint64(0) {
			list = append(list, p.order[64*i:64*i+64]...)
			continue
		}
		for ; word != 0; word &= word - 1 {
			list = append(list, p.order[64*i+bits.TrailingZeros64(word)])
		}
	}
	return list
}

// sort puts prims into the order of their creation.
func (p *prims) sort(list []uint32) {
	created := func(a, b uint32) int { return cmp.Compare(p.place[a], p.place[b]) }
	if !slices.IsSortedFunc(list, created) {
		slices.SortFunc(list, created)
	}
}
