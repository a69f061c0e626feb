package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
)

// note remembers that rows of an attribute were written or deleted: filters look at them anew, and the floor has something to
// seal.
func (s *Stage) note(a *attribute, c *bound, rows column.Rows) {
	if a.postings != nil && !a.postings.touch(c.Column, rows) {
		a.postings = nil
	}
	if !a.queued {
		a.queued = true
		s.unsealed = append(s.unsealed, a)
	}
}

// noteDelete is note for a delete.
func (s *Stage) noteDelete(a *attribute, c *bound, rows column.Rows) {
	s.note(a, c, rows)
	if !a.deleting {
		a.deleting = true
		s.deleting = append(s.deleting, a)
	}
}

// seal folds what the floors have passed, and closes columns that no state shows any more.
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
			s.spend(a, c)
		}
	}
}

// spend lists a column that became spent.
func (s *Stage) spend(a *attribute, c *bound) {
	c.Trim()
	if !c.spent {
		c.spent = true
		s.spent = append(s.spent, spent{a, c})
	}
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
