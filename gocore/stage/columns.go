package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/prims"
	"ovstage.dev/ovstage/gocore/query"
)

// newColumn returns a column that belongs to no attribute yet.
func (s *Stage) newColumn(schema column.Schema) *bound {
	return &bound{Column: column.New(schema), bindings: query.Bindings{Resolved: &s.resolved}}
}

// attach gives a column to an attribute.
func (s *Stage) attach(a *attribute, c *bound) {
	c.KeepHistory(s.history, s.floorOf(a))
	a.columns = append(a.columns, c)
	s.inUse[a.name] = a
}

// close ends a column of an attribute.
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

// columnFor returns the column of an attribute that takes values of a schema for the prims, or nil when a new one is needed. The
// schema of a prim's attribute never changes: another dtype, kind or role for a prim that has a value is refused.
func (s *Stage) columnFor(a *attribute, prims *pathdict.List, schema column.Schema, ordinal uint64) (*bound, error) {
	if a == nil {
		return nil, nil
	}
	var fits *bound
	for _, c := range a.columns {
		takes, err := a.takes(c, prims, schema)
		if err != nil {
			return nil, wrap(err, "attribute %q", s.quoted(a.name))
		}
		if takes {
			if len(a.columns) == 1 {
				return c, nil
			}
			if fits != nil { // roles tell them apart, and none was given
				if carried, err := c.carried(prims); err != nil {
					return nil, wrap(err, "attribute %q", s.quoted(a.name))
				} else if !carried {
					continue
				}
			}
			fits = c
		}
	}
	if err := s.contradicted(a, fits, prims, schema, ordinal); err != nil {
		return nil, err
	}
	return fits, nil
}

// contradicted refuses values for prims that have others, in another column of the attribute than the one that is to take them.
func (s *Stage) contradicted(a *attribute, taker *bound, prims *pathdict.List, schema column.Schema, ordinal uint64) error {
	for _, c := range a.columns {
		if c == taker {
			continue
		}
		carried, err := c.carried(prims)
		if err != nil {
			return wrap(err, "attribute %q", s.quoted(a.name))
		}
		if carried {
			given, existing := schema.String(), c.Schema().String()
			if given == existing {
				given, existing = schema.Spelled(), c.Schema().Spelled()
			}
			return errorf(InvalidArgument, "attribute %q: %s does not match the existing %s;%s delete the attribute first to change its schema",
				s.quoted(a.name), given, existing, schemaHint(schema, c.Schema()))
		}
		if rows, err := c.rowsOf(prims); err != nil {
			return wrap(err, "attribute %q", s.quoted(a.name))
		} else if c.Above(rows, ordinal) {
			return errorf(InvalidArgument, "attribute %q: %s at ordinal %d lies below a delete of the %s; write it above the delete",
				s.quoted(a.name), schema, ordinal, c.Schema())
		}
	}
	return nil
}

// homes finds for each prim which column of the attribute takes its values, by index among the columns: the column in which the
// prim has a value, or had a value until a delete above the ordinal. Prims that have none go where most of the others do; of
// columns with equally many, to the oldest.
func (s *Stage) homes(a *attribute, prims *pathdict.List, schema column.Schema, ordinal uint64) ([]int, error) {
	homes := slices.Repeat([]int{homeless}, prims.Len())
	for at, c := range a.columns {
		takes, err := a.takes(c, prims, schema)
		if err != nil {
			return nil, wrap(err, "attribute %q", s.quoted(a.name))
		}
		if !takes {
			continue
		}
		b, err := c.bindings.Of(c.Column, prims)
		if err != nil {
			return nil, wrap(err, "attribute %q", s.quoted(a.name))
		}
		alive, deleted := c.AllAlive(column.Latest), c.DeletedAbove(ordinal)
		b.Each(func(position int, row uint32) {
			if alive.Has(int(row)) || homes[position] == homeless && deleted.Has(int(row)) {
				homes[position] = at
			}
		})
	}
	fillHomes(homes, len(a.columns))
	return homes, nil
}

// homeless stands for the home of a prim that has no value.
const homeless = -1

// fillHomes gives the prims without a home the home of most others, if others have one.
func fillHomes(homes []int, columns int) {
	prims := make([]int, columns)
	for _, at := range homes {
		if at != homeless {
			prims[at]++
		}
	}
	most := slices.Max(prims)
	if most == 0 {
		return
	}
	for position, at := range homes {
		if at == homeless {
			homes[position] = slices.Index(prims, most)
		}
	}
}
