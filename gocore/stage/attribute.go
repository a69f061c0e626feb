package stage

import (
	"cmp"
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/prims"
)

// attribute is everything known under one name: its floor and one column for each schema in use.
type attribute struct {
	name    pathdict.Token
	plain   bool // the interface has no rule for its name
	floor   uint64
	columns []*bound
	past    uint64 // sum of the generations of columns that were closed

	queued, deleting, keeping bool // listed in the stage's unsealed, deleting, keeping

	carriers prims.Set // the prims that carry it
	postings *postings // once a filter asked for its tokens
}

// spent is a column that holds nothing but its log of deletes. Some are kept, for reads of a range that ask for deletes.
type spent struct {
	attribute *attribute
	column    *bound
}

// isPlain reports whether the attribute is known and the interface has no rule for its name.
func (a *attribute) isPlain() bool { return a != nil && a.plain }

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

// takes reports whether values of schema for the prims may go into a column of the attribute. Texts and numbers, which
// look the same where no type is named, must not be taken for each other: values without a type go to texts only where all of
// the prims have texts; texts go to a column without a type only where it holds values of these prims alone, and where the
// attribute has no other column of texts.
func (a *attribute) takes(c *bound, prims *pathdict.List, schema column.Schema) (bool, error) {
	have := c.Schema()
	switch {
	case !accepts(have, schema):
		return false, nil
	case have.Type.Token == schema.Type.Token:
		return true, nil
	case isText(have.Type) && schema.Type == column.Type{}:
		rows, err := c.rowsOf(prims)
		return rows.Len() == prims.Len() && !slices.Contains(c.Alive(rows, column.Latest), false), err
	case isText(schema.Type) && have.Type == column.Type{}:
		twin := slices.ContainsFunc(a.columns, func(o *bound) bool {
			return o != c && o.Schema().Type == schema.Type && accepts(o.Schema(), schema)
		})
		return !twin && c.within(prims), nil
	}
	return true, nil
}

// stamp gives a column that has no role, or no name of its type, the role and the name of the values that it gets.
func (a *attribute) stamp(c *bound, values column.Schema) {
	have := c.Schema()
	if have.Semantic == 0 && values.Semantic != 0 && !isText(have.Type) { // the role of texts is that they have none
		c.Stamp(values.Semantic)
		a.postings = nil // its values may be tokens from now on
	}
	if have.Type.Token == 0 && values.Type.Token != 0 {
		c.StampType(values.Type)
	}
}

// elsewhere reports whether another column of the attribute has a row for the same prim that satisfies a condition.
func (a *attribute) elsewhere(c *bound, row uint32, condition func(o *bound, other int) bool) bool {
	return slices.ContainsFunc(a.columns, func(o *bound) bool {
		if o == c {
			return false
		}
		other := o.Row(c.Path(int(row)))
		return other >= 0 && condition(o, other)
	})
}

// sorted puts attributes into the order of their names, each once.
func sorted(attributes []*attribute) []*attribute {
	slices.SortFunc(attributes, func(a, b *attribute) int { return cmp.Compare(a.name, b.name) })
	return slices.Compact(attributes)
}
