package tensor

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSemanticCheck(t *testing.T) {
	const (
		neither = iota
		fixedOnly
		arrayOnly
		both
	)
	float3, matrix, boolean := DType{Float, 32, 3}, DType{Float, 64, 16}, DType{Bool, 8, 1}
	byteRow, id, pair, triple := DType{UInt, 8, 1}, DType{UInt, 64, 1}, DType{UInt, 64, 2}, DType{UInt, 64, 3}
	signed := DType{Int, 64, 1}
	dtypes := []DType{float3, matrix, boolean, byteRow, id, pair, triple, signed}
	anything := []int{both, both, both, both, both, both, both, both}
	numeric := []int{both, both, neither, both, both, both, both, both}

	for _, c := range []struct {
		semantic Semantic
		name     string
		allowed  []int // per dtype
	}{
		{SemanticNone, "NONE", anything},
		{SemanticAssetPathID, "ASSET_PATH_ID", []int{5: both, 7: neither}},
		{SemanticTokenID, "TOKEN_ID", []int{4: both, 7: neither}},
		{SemanticPathExpressionString, "PATH_EXPRESSION_STRING", []int{4: both, 7: neither}},
		{SemanticRelationshipPathID, "RELATIONSHIP_PATH_ID", []int{4: arrayOnly, 7: neither}},
		{SemanticPoint, "POINT", numeric},
		{SemanticVector, "VECTOR", numeric},
		{SemanticNormal, "NORMAL", numeric},
		{SemanticColor, "COLOR", numeric},
		{SemanticQuaternion, "QUATERNION", numeric},
		{SemanticMatrix, "MATRIX", numeric},
		{SemanticTextureCoordinate, "TEXTURE_COORDINATE", numeric},
		{SemanticConnectionPathID, "CONNECTION_PATH_ID", []int{5: arrayOnly, 7: neither}},
		{SemanticString, "STRING", []int{3: arrayOnly, 7: neither}},
		{SemanticTimeCode, "TIME_CODE", numeric},
		{SemanticFrame, "FRAME", numeric},
	} {
		assert.Equal(t, c.name, c.semantic.String())
		for i, dtype := range dtypes {
			for _, isArray := range []bool{false, true} {
				wanted := fixedOnly
				if isArray {
					wanted = arrayOnly
				}
				err := c.semantic.Check(dtype, isArray)
				if c.allowed[i]&wanted != 0 {
					assert.NoError(t, err, "%s of %s, array %v", c.semantic, dtype, isArray)
					continue
				}
				assert.ErrorIs(t, err, ErrInvalid, "%s of %s, array %v", c.semantic, dtype, isArray)
				assert.ErrorContains(t, err, c.name)
			}
		}
	}
}

func TestSemanticNumbers(t *testing.T) {
	for number := range int32(16) {
		assert.NotContains(t, Semantic(number).String(), "semantic ")
	}
	for _, unknown := range []Semantic{-1, 16, 1 << 30} {
		assert.ErrorIs(t, unknown.Check(DType{Float, 32, 1}, false), ErrInvalid)
	}
	assert.EqualError(t, Semantic(16).Check(DType{Float, 32, 1}, false), "semantic 16 is unknown: expected 0 (NONE) to 15 (FRAME)")
	assert.Equal(t, "semantic -1", Semantic(-1).String())
}

func TestSemanticRefusalsSayWhatIsNeeded(t *testing.T) {
	assert.EqualError(t, SemanticAssetPathID.Check(DType{UInt, 8, 1}, true),
		"semantic ASSET_PATH_ID needs uint64x2 elements (authored and resolved token), got uint8")
	assert.EqualError(t, SemanticRelationshipPathID.Check(DType{UInt, 64, 1}, false),
		"semantic RELATIONSHIP_PATH_ID is an array attribute (target path): write it with is_array set")
}
