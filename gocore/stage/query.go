package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/prims"
	"ovstage.dev/ovstage/gocore/query"
)

// QueryPaths returns a query over a list of paths. The prims need not exist: writing through the query creates them. The
// query keeps the list; the caller's handle may go at once.
func (s *Stage) QueryPaths(list pathdict.ListHandle) (QueryID, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q, err := query.FromList(s.dict, list)
	if err != nil {
		return 0, errorf(InvalidHandle, "path_list: %s", err)
	}
	id := QueryID(s.nextID())
	s.queries[id] = q
	return id, nil
}

// QueryCount returns the number of prims that a query lists.
func (s *Stage) QueryCount(id QueryID) (int, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, err
	}
	return q.Prims.Len(), nil
}

// QueryWhere returns a query over the prims of another whose bit is set, in its order. The mask is for count prims, which
// must be the number that the query lists. Equal masks make equal lists, so that their bindings are shared.
func (s *Stage) QueryWhere(id QueryID, mask []uint64, count int) (QueryID, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, err
	}
	if count != q.Prims.Len() {
		return 0, errorf(InvalidArgument, "mask is for %d prims, but the query lists %d; pass a bit for each of them", count, q.Prims.Len())
	}
	chosen := selected(mask, count)
	for i, at := range chosen {
		chosen[i] = q.Prims.Indices()[at]
	}
	of := query.Query{Scope: q.Scope}
	of.Select(s.dict, chosen)
	id = QueryID(s.nextID())
	s.queries[id] = of
	return id, nil
}

// QueryResult returns the attributes that at least one listed prim carries, by name token, and the number of listed
// prims.
func (s *Stage) QueryResult(id QueryID) (attributes []pathdict.Token, total int, err error) {
	if err := s.lock(); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return nil, 0, err
	}
	listed := members{list: q.Prims.Indices()}
	report := func(name pathdict.Token, a *attribute) {
		if a != nil && listed.meet(a.carriers) {
			attributes = append(attributes, name)
		}
	}
	switch {
	case len(q.Scope) > 0:
	case len(s.inUse) > manyAttributes:
		attributes = s.prims.Carried(listed.list)
	default:
		for name, a := range s.inUse {
			report(name, a)
		}
	}
	for _, name := range q.Scope {
		report(name, s.find(name))
	}
	slices.Sort(attributes)
	return slices.Compact(attributes), q.Prims.Len(), nil
}

// manyAttributes is the number of attributes from which it costs less to ask each prim what it carries than to ask each attribute
// which prims carry it.
const manyAttributes = 64

// members asks which sets have one of the listed paths in them.
type members struct {
	list  []uint32
	set   prims.Set // the same, once a set is asked that the first few are not in
	asked bool
}

func (m *members) meet(set prims.Set) bool {
	const few = 64
	if set.Any(m.list[:min(few, len(m.list))]) {
		return true
	}
	if len(m.list) > few && !m.asked {
		m.asked = true
		m.set.Change(m.list, +1)
	}
	return set.Meets(m.set)
}

// ReleaseQuery ends a query. Reads, groups and maps made from it go on.
func (s *Stage) ReleaseQuery(id QueryID) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, err
	}
	delete(s.queries, id)
	q.Release(s.dict)
	return s.succeed(), nil
}

func (s *Stage) query(id QueryID) (query.Query, error) {
	q, ok := s.queries[id]
	if !ok {
		return q, errorf(InvalidHandle, "query handle %d is unknown or was released", id)
	}
	return q, nil
}
