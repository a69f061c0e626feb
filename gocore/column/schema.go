package column

import "ovstage.dev/ovstage/gocore/tensor"

// Schema says what the bytes of a column are. Two columns of one attribute differ in it.
type Schema struct {
	DType    tensor.DType    // element type; Lanes is the whole tuple width
	Array    bool            // one variable-length array per row instead of one value
	Semantic tensor.Semantic // role of the bytes
	Type     Type            // what they are called where they come from; zero: unknown
}

// String names the schema for error texts: "float32x3 POINT".
func (s Schema) String() string {
	text := s.DType.String()
	if s.Array {
		text += "[]"
	}
	if s.Semantic != 0 {
		text += " " + s.Semantic.String()
	}
	return text
}

// Spelled is String with the name of the type, for schemas that nothing else tells apart.
func (s Schema) Spelled() string {
	if s.Type == (Type{}) {
		return s.String() + " without a type name"
	}
	return s.String() + " (" + s.Type.Name + ")"
}

// Type is the name of a type, such as that of a USD value: it tells apart what element type and role do not.
type Type struct {
	Token uint64 // the number of the name, which queries answer with
	Name  string
}
