package query

import (
	"fmt"
	"slices"
	"strings"
)

// Match says how a condition follows from those below it. The numbers are those of the C ABI.
type Match uint32

// The ways to match.
const (
	One  Match = 0 // there are none below: the predicate decides
	All  Match = 1 // every one holds, also where there are none
	Any  Match = 2 // at least one holds
	None Match = 3 // not one holds
)

var matches = [...]string{"PREDICATE", "ALL", "ANY", "NONE"}

func (m Match) String() string {
	if int(m) < len(matches) {
		return matches[m]
	}
	return fmt.Sprintf("match %d", int32(m))
}

// Condition is what a filter asks of a prim: a predicate, or further conditions.
type Condition struct {
	Match      Match
	Predicate  Predicate   // for One
	Conditions []Condition // for the others
}

// Is is the condition that a predicate holds.
func Is(p Predicate) Condition { return Condition{Predicate: p} }

// Clone returns a copy that shares no memory with c, whose texts may lie in a caller's.
func (c Condition) Clone() Condition {
	c.Predicate.Values = slices.Clone(c.Predicate.Values)
	for i, text := range c.Predicate.Values {
		c.Predicate.Values[i] = strings.Clone(text)
	}
	c.Conditions = slices.Clone(c.Conditions)
	for i := range c.Conditions {
		c.Conditions[i] = c.Conditions[i].Clone()
	}
	return c
}
