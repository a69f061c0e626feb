package stage

import (
	"slices"
	"strconv"
	"strings"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

// QueryFilter returns a query over the prims that meet a condition, in the order of their creation. It asks the newest
// executed state, sealed or not, once: what is written later changes the query only when it is refreshed. Its result
// reports those of attrs that the prims carry, or every attribute without attrs.
//
// # Cost
//
// A filter works on bits, one for each prim, and never looks at the text of paths that it does not select: conditions on
// paths follow the tree of the prims (family), tokens are looked up (postings), carriers of an attribute are known. Beyond
// a scan of those bits, some 40 us for a million prims and condition, it costs what it selects. Comparisons with numbers
// read the whole column.
func (s *Stage) QueryFilter(filter Condition, attrs []pathdict.Token) (QueryID, uint64, error) {
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	if err := s.checkNames("attrs", attrs); err != nil {
		return 0, 0, err
	}
	selected, err := s.meet(&filter, nil)
	if err != nil {
		return 0, 0, err
	}
	kept := filter.Clone()
	q := query.Query{Scope: slices.Clone(attrs), Filter: &kept}
	q.Select(s.dict, s.prims.List(selected))
	id := QueryID(s.nextID())
	s.queries[id] = q
	return id, s.succeed(), nil
}

// RefreshQuery asks the filter of a query again, of the newest executed state, and makes the query one over the prims that
// meet it now. Reads, groups and maps made from it before keep their prims. A query over a list of paths stays what it is.
// A filter that can't be served any more is refused, and the query stays what it was.
func (s *Stage) RefreshQuery(id QueryID) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, err
	}
	if q.Filter != nil {
		selected, err := s.meet(q.Filter, nil)
		if err != nil {
			return 0, err
		}
		q.Select(s.dict, s.prims.List(selected))
		s.queries[id] = q
	}
	return s.succeed(), nil
}

// meet selects the prims that meet a condition. at says where in the filter it is, for errors.
func (s *Stage) meet(c *Condition, at []int) (bitset.Set, error) {
	if c.Match == query.One {
		met := s.prims.None()
		if err := s.checkPredicate(&c.Predicate); err != nil {
			return nil, located(err, at)
		}
		return met, located(s.match(met, &c.Predicate), at)
	}
	if err := checkMatch(c); err != nil {
		return nil, located(err, at)
	}
	met := s.prims.None()
	if c.Match == query.All {
		s.prims.AddAll(met)
	}
	for i := range c.Conditions {
		here := at
		if len(c.Conditions) > 1 {
			here = append(slices.Clip(at), i)
		}
		one, err := s.meet(&c.Conditions[i], here)
		if err != nil {
			return nil, err
		}
		if c.Match == query.All {
			met.And(one)
		} else {
			met.Or(one)
		}
	}
	if c.Match == query.None {
		all := s.prims.None()
		s.prims.AddAll(all)
		all.AndNot(met)
		met = all
	}
	return met, nil
}

// checkMatch refuses unknown combinations, and combinations of nothing, which are mistakes: only ALL of nothing is the filter that
// every prim meets.
func checkMatch(c *Condition) error {
	switch {
	case c.Match > query.None:
		return errorf(InvalidArgument, "%s is not one of PREDICATE (0), ALL (1), ANY (2), NONE (3)", c.Match)
	case c.Match != query.All && len(c.Conditions) == 0:
		return errorf(InvalidArgument, "%s needs at least one condition, got none", c.Match)
	}
	return nil
}

// located says in an error which of several predicates is at fault: 2.0 is the first below the third.
func located(err error, at []int) error {
	if err != nil && len(at) > 0 {
		numbers := make([]string, len(at))
		for i, n := range at {
			numbers[i] = strconv.Itoa(n)
		}
		return prefix(err, "predicate %s: ", strings.Join(numbers, "."))
	}
	return err
}
