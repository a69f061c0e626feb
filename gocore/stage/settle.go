package stage

import (
	"slices"

	"ovstage/gocore/prims"
)

// seal folds what the floors have passed, and lets go of what no state shows any more.
func (s *Stage) seal() {
	kept := s.keeping
	s.keeping = nil
	for _, a := range kept {
		a.keeping = false
		s.fold(a)
	}
	s.unsealed = slices.DeleteFunc(s.unsealed, func(a *attribute) bool {
		s.fold(a)
		return !a.queued
	})
	s.deleting = slices.DeleteFunc(s.deleting, func(a *attribute) bool {
		a.deleting = slices.ContainsFunc(a.columns, func(c *bound) bool { return c.Deleting() })
		return !a.deleting
	})
	s.bury()
}

// fold folds what the floor of an attribute has passed. A column that cannot be folded for want of memory keeps its
// records; reads try again and report it.
func (s *Stage) fold(a *attribute) {
	floor := s.floorOf(a)
	a.queued = false
	for _, c := range a.columns {
		_ = c.Seal(floor)
		a.queued = a.queued || c.Unsealed()
		switch {
		case c.KeepsHistory() && !a.keeping:
			a.keeping = true
			s.keeping = append(s.keeping, a)
		case c.Spent():
			c.Shed()
			if !c.spent {
				c.spent = true
				s.spent = append(s.spent, spent{a, c})
			}
		}
	}
}

// spent is a column that holds nothing but the log of who was deleted when. Some are kept for the ranges that ask for that.
type spent struct {
	attribute *attribute
	column    *bound
}

// bury closes the oldest spent columns where there are too many. What their logs knew is forgotten, so the frontier of changes
// passes it; it stays at or below the floor.
func (s *Stage) bury() {
	for range len(s.spent) - maxSpent {
		oldest := s.spent[0]
		a, c := oldest.attribute, oldest.column
		s.spent[0] = spent{}
		s.spent = s.spent[1:]
		switch last := c.Sealed().Ordinal(); {
		case !c.Spent(): // it was written to again
			c.spent = false
		case last >= s.floorOf(a):
			s.spent = append(s.spent, oldest)
		default:
			s.frontier = max(s.frontier, last+1)
			s.close(a, c)
		}
	}
}

// close drops a column of an attribute.
func (s *Stage) close(a *attribute, c *bound) {
	a.past += c.Sealed().Generation()
	a.columns = slices.DeleteFunc(a.columns, func(o *bound) bool { return o == c })
	a.postings = nil
	c.bindings.Close()
	c.Column.Close()
	if len(a.columns) == 0 {
		a.carriers = prims.Set{}
		delete(s.inUse, a.name)
	}
}

// generation rises when rows of an attribute that is known come or go, as of an ordinal.
func (a *attribute) generation(ordinal uint64) uint64 {
	if a == nil {
		return 0
	}
	sum := a.past
	for _, c := range a.columns {
		sum += c.At(ordinal).Generation()
	}
	return sum
}
