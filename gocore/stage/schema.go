package stage

import (
	"fmt"
	"slices"

	"ovstage/gocore/column"
	"ovstage/gocore/pathdict"
	"ovstage/gocore/prims"
	"ovstage/gocore/tensor"
)

// columnFor returns the column that takes values of a schema for the prims, or nil when a new one is needed. The
// schema of a prim's attribute never changes: another dtype, kind or role for a prim that has a value is refused.
func (s *Stage) columnFor(name pathdict.Token, prims *pathdict.List, schema column.Schema, ordinal uint64) (*bound, *Error) {
	a := s.attributes[name]
	if a == nil {
		return nil, nil
	}
	var fits *bound
	for _, c := range a.columns {
		takes, err := a.takes(c, prims, schema)
		if err != nil {
			return nil, wrap(err, "attribute %q", s.quoted(name))
		}
		if takes {
			if len(a.columns) == 1 {
				return c, nil
			}
			if fits != nil { // roles tell them apart, and none was given
				if carried, err := c.carried(prims); err != nil {
					return nil, wrap(err, "attribute %q", s.quoted(name))
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
func (s *Stage) contradicted(a *attribute, taker *bound, prims *pathdict.List, schema column.Schema, ordinal uint64) *Error {
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

// schemaHint says how values get the type, or the shape, of those that exist.
func schemaHint(given, have column.Schema) string {
	one := func(t tensor.DType) tensor.DType { t.Lanes = 1; return t }
	switch {
	case given.Array != have.Array:
		return ""
	case given.DType.Lanes != have.DType.Lanes && have.DType.Lanes == 1:
		return " pass one value per row, shape (n,), or"
	case given.DType.Lanes != have.DType.Lanes:
		return fmt.Sprintf(" pass rows of %d values, shape (n, %d), or", have.DType.Lanes, have.DType.Lanes)
	case given.DType != have.DType:
		return fmt.Sprintf(" convert the values, in NumPy by array.astype(%q), or", one(have.DType).String())
	}
	return ""
}

// carried reports whether any of the prims holds a value in the column, in its newest state.
func (c *bound) carried(prims *pathdict.List) (bool, error) {
	rows, err := c.rowsOf(prims)
	if err != nil || rows.Len() == 0 || !c.Deletes() {
		return rows.Len() > 0, err
	}
	return slices.Contains(c.Alive(rows, latest), true), nil
}

// rowsOf returns the rows of those prims that have one.
func (c *bound) rowsOf(prims *pathdict.List) (column.Rows, error) {
	b, err := c.bindings.Of(c.Column, prims)
	if err != nil {
		return column.Rows{}, err
	}
	return b.Rows(), nil
}

// accepts reports whether values of schema may go into a column: same layout, and a role and a type name that do not
// contradict.
func accepts(have, schema column.Schema) bool {
	return have.DType == schema.DType && have.Array == schema.Array &&
		(have.Semantic == schema.Semantic || have.Semantic == 0 || schema.Semantic == 0) &&
		(have.Type.Token == schema.Type.Token || have.Type.Token == 0 || schema.Type.Token == 0)
}

// isText reports whether the values of a type are the ids of texts although no role says so.
func isText(t column.Type) bool { return t.Name == "string" || t.Name == "string[]" }

// takes reports whether values of schema for the prims may go into a column of the attribute. Texts and numbers, which
// look the same where no type is named, must not be taken for each other: values without a type go to texts only where all of
// the prims have texts, and texts go to a column without a type only where it holds nothing else, and becomes their only one.
func (a *attribute) takes(c *bound, prims *pathdict.List, schema column.Schema) (bool, error) {
	have := c.Schema()
	switch {
	case !accepts(have, schema):
		return false, nil
	case have.Type.Token == schema.Type.Token:
		return true, nil
	case isText(have.Type) && schema.Type == column.Type{}:
		rows, err := c.rowsOf(prims)
		return rows.Len() == prims.Len() && !slices.Contains(c.Alive(rows, latest), false), err
	case isText(schema.Type) && have.Type == column.Type{}:
		twin := slices.ContainsFunc(a.columns, func(o *bound) bool {
			return o != c && o.Schema().Type == schema.Type && accepts(o.Schema(), schema)
		})
		return !twin && c.within(prims), nil
	}
	return true, nil
}

// within reports whether every prim that has a value in the column is one of the listed.
func (c *bound) within(list *pathdict.List) bool {
	var listed prims.Set
	listed.Change(list.Indices(), +1)
	alive := c.AllAlive(latest)
	for row := range c.Column.Rows() {
		if alive.Has(row) && !listed.Has(c.Path(row)) {
			return false
		}
	}
	return true
}

// typeOf is a type by the token of its name, the zero type for none.
func (s *Stage) typeOf(name pathdict.Token) column.Type {
	if name == 0 {
		return column.Type{}
	}
	return column.Type{Token: uint64(name), Name: s.text(name)}
}

// tokenColumns are the recorded attributes whose schema the interface fixes: token ids, one or an array per prim.
var tokenColumns = map[string]bool{"usd-prim-type": false, "usd-schemas": true}

// ruled reports whether the interface has a rule for a name: it is an alias, can't be written, or has a fixed schema.
func (s *Stage) ruled(name pathdict.Token) bool {
	text := s.text(name)
	_, alias := aliases[text]
	_, fixed := tokenColumns[text]
	return alias || fixed || slices.Contains(derived, text)
}

// isPlain reports whether a name is that of an attribute for which there is no rule. It is quick: texts are not looked at.
func (s *Stage) isPlain(name pathdict.Token) bool {
	a := s.attributes[name]
	return a != nil && a.plain
}

// checkFixed refuses another schema for an attribute whose schema is fixed.
func (s *Stage) checkFixed(name pathdict.Token, schema column.Schema) *Error {
	if s.isPlain(name) {
		return nil
	}
	array, fixed := tokenColumns[s.text(name)]
	expected := column.Schema{DType: tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 1}, Array: array}
	given := column.Schema{DType: schema.DType, Array: schema.Array}
	if !fixed || given == expected && (schema.Semantic == tensor.SemanticNone || schema.Semantic == tensor.SemanticTokenID) {
		return nil
	}
	return errorf(InvalidArgument, "attribute %q holds token ids: expected %s TOKEN_ID, got %s", s.quoted(name), expected, schema)
}

// aliases are second names of stored columns, as the interface has them.
var aliases = map[string]string{"omni:fabric:localMatrix": "omni:xform"}

// stored returns the name under which the column of an attribute is kept.
func (s *Stage) stored(name pathdict.Token) pathdict.Token {
	if s.isPlain(name) {
		return name
	}
	if target, ok := aliases[s.text(name)]; ok {
		if token, err := s.dict.Token(target); err == nil {
			return token
		}
	}
	return name
}

// find returns the attribute that a client means by a name, nil if there is none.
func (s *Stage) find(name pathdict.Token) *attribute { return s.attributes[s.stored(name)] }

// storedAll is stored for a list of names.
func (s *Stage) storedAll(names []pathdict.Token) []pathdict.Token {
	stored := make([]pathdict.Token, len(names))
	for i, name := range names {
		stored[i] = s.stored(name)
	}
	return stored
}
