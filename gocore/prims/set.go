package prims

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
)

// Set is a set of paths, one bit for each dense index. It has pages only where it has paths: a set of a few prims is small,
// however many paths there are. The zero Set is empty.
type Set struct{ pages []*page }

// page is the bits of a run of paths; bits() is the same memory as a set.
type page [pageSize / 64]uint64

func (p *page) bits() bitset.Set { return p[:] }

const pageSize = 4096

// at returns the page of a path, nil where there is none.
func (s Set) at(path uint32) *page {
	if i := int(path / pageSize); i < len(s.pages) {
		return s.pages[i]
	}
	return nil
}

// Has reports whether a path is in the set.
func (s Set) Has(path uint32) bool {
	p := s.at(path)
	return p != nil && p.bits().Has(int(path%pageSize))
}

// Add puts a path into the set.
func (s *Set) Add(path uint32) {
	p := s.at(path)
	if p == nil {
		p = s.open(path)
	}
	p.bits().Add(int(path % pageSize))
}

// open makes the page of a path.
func (s *Set) open(path uint32) *page {
	if missing := int(path/pageSize) + 1 - len(s.pages); missing > 0 {
		s.pages = append(s.pages, make([]*page, missing)...)
	}
	s.pages[path/pageSize] = new(page)
	return s.pages[path/pageSize]
}

// Change adds paths to the set, or takes them away when by is negative. Neighbours in the list mostly lie in one page.
func (s *Set) Change(paths []uint32, by int) {
	var p *page
	of := ^uint32(0) // no path has that page
	for _, path := range paths {
		if path/pageSize != of {
			of, p = path/pageSize, s.at(path)
			if p == nil && by > 0 {
				p = s.open(path)
			}
		}
		switch {
		case p == nil:
		case by > 0:
			p[path%pageSize/64] |= 1 << (path % 64)
		default:
			p[path%pageSize/64] &^= 1 << (path % 64)
		}
	}
}

// Count is the number of paths in the set.
func (s Set) Count() (n int) {
	for _, p := range s.pages {
		if p != nil {
			n += p.bits().Count()
		}
	}
	return n
}

// Each calls visit for every path, ascending.
func (s Set) Each(visit func(path uint32)) {
	for i, p := range s.pages {
		if p != nil {
			p.bits().Each(func(k int) { visit(uint32(pageSize*i + k)) })
		}
	}
}

// Any reports whether one of the paths is in the set.
func (s Set) Any(paths []uint32) bool { return slices.ContainsFunc(paths, s.Has) }

// Meets reports whether two sets have a path in common.
func (s Set) Meets(other Set) bool {
	for i, p := range s.pages[:min(len(s.pages), len(other.pages))] {
		if o := other.pages[i]; p != nil && o != nil && p.bits().Meets(o.bits()) {
			return true
		}
	}
	return false
}
