package stage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// Scope says which floors an advance raises.
type Scope uint32

// The scopes.
const (
	All     Scope = 0 // the global floor, and with it every attribute
	Include Scope = 1 // the listed attributes
	Exclude Scope = 2 // every known attribute but the listed; with an empty list, All
)

// AdvanceFloor seals everything in scope up to ordinal: writes at or below it become what readers see, and later writes
// there are refused. A floor is never lowered; a smaller ordinal changes nothing.
func (s *Stage) AdvanceFloor(ordinal uint64, scope Scope, names []pathdict.Token) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if err := s.checkNames("desc.attributes", names); err != nil {
		return 0, err
	}
	names = s.storedAll(names)
	switch {
	case scope == All || scope == Exclude && len(names) == 0:
		s.floor = max(s.floor, ordinal)
	case scope == Include:
		for _, name := range names {
			a := s.known(name)
			a.floor = max(a.floor, ordinal)
		}
	case scope == Exclude:
		for name, a := range s.attributes {
			if !slices.Contains(names, name) {
				a.floor = max(a.floor, ordinal)
			}
		}
	default:
		return 0, errorf(InvalidArgument, "desc.scope %d is not one of ALL (0), INCLUDE (1), EXCLUDE (2)", int32(scope))
	}
	s.seal()
	return s.succeed(), nil
}

// FloorReached reports whether the lowest effective floor of the attributes, or the global floor where none is named, has come
// to the ordinal. An attribute that is not known has the global floor. With late a floor below is a Timeout that says where the
// floors are.
func (s *Stage) FloorReached(ordinal uint64, names []pathdict.Token, late bool) (bool, error) {
	if err := s.lock(); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if err := s.checkNames("attributes", names); err != nil {
		return false, err
	}
	lowest, floor := pathdict.Token(0), s.floor
	for k, name := range names {
		if f := s.floorOf(s.find(name)); k == 0 || f < floor {
			lowest, floor = name, f
		}
	}
	if floor >= ordinal || !late {
		return floor >= ordinal, nil
	}
	of := "the global write floor"
	if lowest != 0 {
		of = fmt.Sprintf("the write floor of attribute %q", s.quoted(lowest))
	}
	return false, errorf(Timeout, "timeout: %s is %d, ordinal %d was waited for; %s", of, floor, ordinal, s.ahead())
}

// ahead says which attributes are sealed further than the global floor, the furthest first.
func (s *Stage) ahead() string {
	const most = 5
	var further []*attribute
	for _, a := range s.attributes {
		if a.floor > s.floor {
			further = append(further, a)
		}
	}
	if len(further) == 0 {
		return "no attribute is sealed further than the global floor"
	}
	slices.SortFunc(further, func(a, b *attribute) int {
		return cmp.Or(cmp.Compare(b.floor, a.floor), cmp.Compare(s.text(a.name), s.text(b.name)))
	})
	words := make([]string, 0, most+1)
	for _, a := range further[:min(most, len(further))] {
		words = append(words, fmt.Sprintf("%q up to %d", s.quoted(a.name), a.floor))
	}
	if rest := len(further) - len(words); rest > 0 {
		words = append(words, fmt.Sprintf("and %d more", rest))
	}
	return fmt.Sprintf("sealed further than the global floor %d: %s", s.floor, strings.Join(words, ", "))
}

// KeepHistory keeps the values as of the last n sealed ordinals readable, of every attribute, from now on.
func (s *Stage) KeepHistory(n uint64) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.history = n
	for _, a := range s.inUse {
		for _, c := range a.columns {
			c.KeepHistory(n, s.floorOf(a))
		}
	}
	return nil
}

// OldestPreserved answers, through FetchOrdinal, the ordinal from which change membership is exact for every attribute: 0
// until changes had to be folded.
func (s *Stage) OldestPreserved() (OrdinalQueryID, uint64, error) {
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	frontier := s.frontier
	for _, a := range s.inUse {
		for _, c := range a.columns {
			frontier = max(frontier, c.Frontier())
		}
	}
	return s.answer(frontier)
}

// AttributeFloor answers, through FetchOrdinal, the effective floor of an attribute, known or not, or the global floor
// for token 0.
func (s *Stage) AttributeFloor(name pathdict.Token) (OrdinalQueryID, uint64, error) {
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	if name == 0 {
		return s.answer(s.floor)
	}
	if err := s.checkNames("attribute", []pathdict.Token{name}); err != nil {
		return 0, 0, err
	}
	return s.answer(s.floorOf(s.find(name)))
}

func (s *Stage) answer(ordinal uint64) (OrdinalQueryID, uint64, error) {
	id := OrdinalQueryID(s.nextID())
	s.ordinals[id] = ordinal
	return id, s.succeed(), nil
}

// FetchOrdinal returns the answer of an ordinal query. It may be asked again.
func (s *Stage) FetchOrdinal(id OrdinalQueryID) (uint64, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	ordinal, ok := s.ordinals[id]
	if !ok {
		return 0, errorf(InvalidHandle, "ordinal query handle %d is unknown or was released", id)
	}
	return ordinal, nil
}

// ReleaseOrdinalQuery ends an ordinal query.
func (s *Stage) ReleaseOrdinalQuery(id OrdinalQueryID) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if _, ok := s.ordinals[id]; !ok {
		return 0, errorf(InvalidHandle, "ordinal query handle %d is unknown or was released", id)
	}
	delete(s.ordinals, id)
	return s.succeed(), nil
}
