package stage

import (
	"slices"
	"strings"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

// Predicate is a condition on one attribute.
type Predicate = query.Predicate

// Condition is what a filter asks: a predicate, or a combination of conditions.
type Condition = query.Condition

// checkPredicate refuses what needs no look at the stage to be refused.
func (s *Stage) checkPredicate(p *Predicate) error {
	if err := s.checkNames("predicate attribute", []pathdict.Token{p.Attribute}); err != nil {
		return err
	}
	name := s.quoted(p.Attribute)
	if name == "usd-active" || p.Op > query.GE {
		return unsupported(name, p.Op)
	}
	if err := p.CheckValues(); err != nil {
		return wrap(err, "attribute %q", name)
	}
	return nil
}

// match selects the prims that meet one predicate.
func (s *Stage) match(to bitset.Set, p *Predicate) error {
	switch name := s.text(p.Attribute); {
	case name == "usd-path" && p.Op == query.Has:
		s.prims.AddAll(to)
	case name == "usd-path" && p.Op == query.In:
		return s.matchPaths(p, func(path uint32) { s.prims.Add(to, path) })
	case name == "usd-path" && p.Op == query.Prefix:
		s.matchPrefixes(to, p.Values)
	case name == "usd-parent" && p.Op == query.Has:
		s.prims.AddWhere(to, s.prims.Nested)
	case name == "usd-parent" && p.Op == query.In:
		return s.matchPaths(p, func(path uint32) {
			s.prims.Tree().Children(path, func(child uint32) { s.prims.Add(to, child) })
		})
	case name == "usd-children" && p.Op == query.Has:
		tree := s.prims.Tree()
		s.prims.AddWhere(to, func(path uint32) bool { return tree.Prims(path) > 0 })
	case name == "usd-children" && p.Op == query.Contains:
		return s.matchPaths(p, func(path uint32) {
			if path != 0 && s.prims.Exists(path) {
				s.prims.Add(to, s.dict.ParentAt(path))
			}
		})
	case slices.Contains(derived, name):
		return unsupported(name, p.Op)
	case p.Op == query.Has:
		s.matchCarriers(to, p.Attribute)
	case name == "usd-prim-type" && p.Op == query.In, name == "usd-schemas" && p.Op == query.Contains:
		return s.matchTokens(to, p)
	case name == "usd-prim-type" || name == "usd-schemas":
		return unsupported(name, p.Op)
	case p.Op == query.In || p.Op.Orders():
		return s.matchValues(to, p)
	default:
		return unsupported(name, p.Op)
	}
	return nil
}

// matchPaths calls found for each value of a predicate that is an interned path.
func (s *Stage) matchPaths(p *Predicate, found func(path uint32)) error {
	paths := make([]pathdict.Path, len(p.Values))
	if err := s.dict.LookupPaths(p.Values, paths); err != nil {
		return wrap(err, "attribute %q, values", s.quoted(p.Attribute))
	}
	for _, path := range paths {
		if index, known := s.dict.Index(path); known {
			found(index)
		}
	}
	return nil
}

// matchPrefixes selects the prims whose path begins with one of the values, byte by byte: what follows the last slash is
// the beginning of a name, and everything below what is so named is selected as well.
func (s *Stage) matchPrefixes(to bitset.Set, values []string) {
	add := func(path uint32) { s.prims.Add(to, path) }
	for _, prefix := range values {
		slash := strings.LastIndexByte(prefix, '/')
		if prefix == "" || prefix == "/" {
			s.prims.AddAll(to)
			continue
		}
		above, known := s.above(prefix, slash)
		if !known {
			continue
		}
		tree := s.prims.Tree()
		if name := prefix[slash+1:]; name == "" {
			tree.Children(above, func(child uint32) { tree.Below(child, add) })
		} else {
			tree.Named(above, name, func(child uint32) { tree.Below(child, add) })
		}
	}
}

// above returns the path that a prefix has before its last slash. It is false when no path begins like that.
func (s *Stage) above(prefix string, slash int) (uint32, bool) {
	switch {
	case slash == 0:
		return 0, true
	case slash == 1: // "//"
		return 0, false
	}
	var found [1]pathdict.Path
	if slash < 0 || s.dict.LookupPaths([]string{prefix[:slash]}, found[:]) != nil {
		return 0, false
	}
	return s.dict.Index(found[0])
}

// matchCarriers selects the prims that carry an attribute.
func (s *Stage) matchCarriers(to bitset.Set, name pathdict.Token) {
	if a := s.find(name); a != nil {
		s.prims.AddSet(to, a.carriers)
	}
}

// matchTokens selects the prims for which an attribute holds one of the values as a token.
func (s *Stage) matchTokens(to bitset.Set, p *Predicate) error {
	a := s.find(p.Attribute)
	if a == nil {
		return nil
	}
	tokens, err := s.postings(a)
	if err != nil {
		return wrap(err, "attribute %q", s.quoted(p.Attribute))
	}
	for _, text := range p.Values {
		token, known := s.dict.LookupToken(text)
		if !known {
			continue
		}
		s.prims.AddEach(to, tokens.of(token))
	}
	return nil
}

// matchValues selects prims by the value of an ordinary attribute: as a token or as a number, whichever the column holds.
func (s *Stage) matchValues(to bitset.Set, p *Predicate) error {
	a := s.find(p.Attribute)
	if a == nil {
		return nil
	}
	tokens := false
	for _, c := range a.columns {
		alive := c.AllAlive(column.Latest)
		schema := c.Schema()
		switch {
		case !someRow(c, alive):
		case p.Op == query.In && s.holdsTokens(a, schema):
			tokens = true
		case schema.Array || !query.Comparable(schema.DType) || s.holdsTokens(a, schema):
			return errorf(NotSupported, "attribute %q holds %s, which %s can't compare; %s", s.quoted(p.Attribute), schema, p.Op, supported)
		default:
			if err := s.matchNumbers(to, p, c, alive); err != nil {
				return err
			}
		}
	}
	if !tokens {
		return nil
	}
	return s.matchTokens(to, p)
}

// matchNumbers selects prims by the newest values of one column, sealed or not. It costs a copy of the column.
func (s *Stage) matchNumbers(to bitset.Set, p *Predicate, c *bound, alive bitset.Set) error {
	values, err := c.newest()
	if err == nil {
		defer values.Release()
		err = p.Select(c.Schema().DType, values.Bytes()[:c.Rows()*c.Width()], func(row int) {
			if alive.Has(row) {
				s.prims.Add(to, c.Path(row))
			}
		})
	}
	if err != nil {
		return wrap(err, "attribute %q", s.quoted(p.Attribute))
	}
	return nil
}

const supported = `supported are HAS on any attribute but usd-active, IN and PREFIX on usd-path, IN on usd-parent and usd-prim-type, ` +
	`CONTAINS on usd-children and usd-schemas, IN on attributes of single tokens or numbers, and LT, LE, GT, GE on single numbers`

func unsupported(name string, op query.FilterOp) error {
	return errorf(NotSupported, "attribute %q can't be filtered with %s; %s", name, op, supported)
}
