package tensor

import "fmt"

// Semantic says what the numbers of a column mean. It is stored beside the data type and never changes bytes.
type Semantic int32

// The semantics, in the numbers of the C interface.
const (
	SemanticNone                 Semantic = 0
	SemanticAssetPathID          Semantic = 1
	SemanticTokenID              Semantic = 2
	SemanticPathExpressionString Semantic = 3
	SemanticRelationshipPathID   Semantic = 4
	SemanticPoint                Semantic = 5
	SemanticVector               Semantic = 6
	SemanticNormal               Semantic = 7
	SemanticColor                Semantic = 8
	SemanticQuaternion           Semantic = 9
	SemanticMatrix               Semantic = 10
	SemanticTextureCoordinate    Semantic = 11
	SemanticConnectionPathID     Semantic = 12
	SemanticString               Semantic = 13
	SemanticTimeCode             Semantic = 14
	SemanticFrame                Semantic = 15
)

// rule is what a semantic asks of a payload.
type rule struct {
	name      string
	dtype     DType  // zero: see numeric
	contents  string // what the numbers of dtype are
	arrayOnly bool
	numeric   bool // any type but bool
}

var (
	oneID   = DType{UInt, 64, 1}
	pairIDs = DType{UInt, 64, 2}
	oneByte = DType{UInt, 8, 1}
)

var rules = [...]rule{
	SemanticNone:                 {name: "NONE"},
	SemanticAssetPathID:          {name: "ASSET_PATH_ID", dtype: pairIDs, contents: "authored and resolved token"},
	SemanticTokenID:              {name: "TOKEN_ID", dtype: oneID, contents: "token"},
	SemanticPathExpressionString: {name: "PATH_EXPRESSION_STRING", dtype: oneID, contents: "token of the expression text"},
	SemanticRelationshipPathID:   {name: "RELATIONSHIP_PATH_ID", dtype: oneID, contents: "target path", arrayOnly: true},
	SemanticPoint:                {name: "POINT", numeric: true},
	SemanticVector:               {name: "VECTOR", numeric: true},
	SemanticNormal:               {name: "NORMAL", numeric: true},
	SemanticColor:                {name: "COLOR", numeric: true},
	SemanticQuaternion:           {name: "QUATERNION", numeric: true},
	SemanticMatrix:               {name: "MATRIX", numeric: true},
	SemanticTextureCoordinate:    {name: "TEXTURE_COORDINATE", numeric: true},
	SemanticConnectionPathID:     {name: "CONNECTION_PATH_ID", dtype: pairIDs, contents: "target path and property token", arrayOnly: true},
	SemanticString:               {name: "STRING", dtype: oneByte, contents: "UTF-8 bytes", arrayOnly: true},
	SemanticTimeCode:             {name: "TIME_CODE", numeric: true},
	SemanticFrame:                {name: "FRAME", numeric: true},
}

// String returns the name of the C constant without its prefix, such as "ASSET_PATH_ID".
func (s Semantic) String() string {
	if !s.known() {
		return fmt.Sprintf("semantic %d", int32(s))
	}
	return rules[s].name
}

func (s Semantic) known() bool { return s >= 0 && int(s) < len(rules) }

// Check refuses, as ErrInvalid, a payload that cannot carry the semantic. dtype is that of a row of a fixed column, or of
// an element of an array column.
func (s Semantic) Check(dtype DType, isArray bool) error {
	if !s.known() {
		return invalid("semantic %d is unknown: expected 0 (NONE) to %d (%s)", int32(s), len(rules)-1, rules[len(rules)-1].name)
	}
	r := rules[s]
	switch {
	case r.dtype != DType{} && dtype != r.dtype:
		return invalid("semantic %s needs %s elements (%s), got %s", s, r.dtype, r.contents, dtype)
	case r.arrayOnly && !isArray:
		return invalid("semantic %s is an array attribute (%s): write it with is_array set", s, r.contents)
	case r.numeric && dtype.Code == Bool:
		return invalid("semantic %s needs numeric elements, got %s", s, dtype)
	}
	return nil
}
