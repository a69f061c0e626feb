package stage

import (
	"fmt"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/tensor"
)

// accepts reports whether values of schema may go into a column: same layout, and a role and a type name that do not
// contradict.
func accepts(have, schema column.Schema) bool {
	return have.DType == schema.DType && have.Array == schema.Array &&
		(have.Semantic == schema.Semantic || have.Semantic == 0 || schema.Semantic == 0) &&
		(have.Type.Token == schema.Type.Token || have.Type.Token == 0 || schema.Type.Token == 0)
}

// isText reports whether the values of a type are the ids of texts although no role says so.
func isText(t column.Type) bool { return t.Name == "string" || t.Name == "string[]" }

// schemaHint says how values get the type, or the shape, of those that exist.
func schemaHint(given, have column.Schema) string {
	one := func(t tensor.DType) tensor.DType { t.Lanes = 1; return t }
	switch {
	case given.Array != have.Array:
		return ""
	case given.DType.Lanes != have.DType.Lanes && have.Array: // trailing axes of arrays are more elements
		return fmt.Sprintf(" pass arrays with lanes=%d, or", have.DType.Lanes)
	case given.DType.Lanes != have.DType.Lanes && have.DType.Lanes == 1:
		return " pass one value per row, shape (n,), or"
	case given.DType.Lanes != have.DType.Lanes:
		return fmt.Sprintf(" pass rows of %d values, shape (n, %d), or", have.DType.Lanes, have.DType.Lanes)
	case given.DType != have.DType:
		return fmt.Sprintf(" convert the values, in NumPy by array.astype(%q), or", one(have.DType).String())
	}
	return ""
}
