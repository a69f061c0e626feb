package tensor

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDTypeNamesAndSizes(t *testing.T) {
	for _, c := range []struct {
		dtype DType
		name  string
		size  int
	}{
		{DType{Int, 8, 1}, "int8", 1},
		{DType{Int, 64, 2}, "int64x2", 16},
		{DType{UInt, 32, 1}, "uint32", 4},
		{DType{UInt, 8, 255}, "uint8x255", 255},
		{DType{Float, 16, 1}, "float16", 2},
		{DType{Float, 32, 3}, "float32x3", 12},
		{DType{Float, 64, 16}, "float64x16", 128},
		{DType{Bfloat, 16, 1}, "bfloat16", 2},
		{DType{Complex, 64, 1}, "complex64", 8},
		{DType{Complex, 128, 2}, "complex128x2", 32},
		{DType{Bool, 8, 1}, "bool8", 1},
		{DType{OpaqueHandle, 64, 1}, "opaque64", 8},
		{DType{Float8E3M4, 8, 1}, "float8_e3m4", 1},
		{DType{Float8E4M3, 8, 1}, "float8_e4m3", 1},
		{DType{Float8E4M3B11FNUZ, 8, 1}, "float8_e4m3b11fnuz", 1},
		{DType{Float8E4M3FN, 8, 4}, "float8_e4m3fnx4", 4},
		{DType{Float8E4M3FNUZ, 8, 1}, "float8_e4m3fnuz", 1},
		{DType{Float8E5M2, 8, 1}, "float8_e5m2", 1},
		{DType{Float8E5M2FNUZ, 8, 1}, "float8_e5m2fnuz", 1},
		{DType{Float8E8M0FNU, 8, 1}, "float8_e8m0fnu", 1},
		{DType{Float6E2M3FN, 6, 4}, "float6_e2m3fnx4", 3},
		{DType{Float6E3M2FN, 6, 1}, "float6_e3m2fn", 1},
		{DType{Float4E2M1FN, 4, 3}, "float4_e2m1fnx3", 2},
		{DType{Code(18), 5, 1}, "code18_5bits", 1},
		{DType{}, "int0x0", 0},
	} {
		assert.Equal(t, c.name, c.dtype.String())
		assert.Equal(t, c.size, c.dtype.Size(), c.name)
	}
}

func TestDTypeCheck(t *testing.T) {
	stored := map[Code][]uint8{
		Int: {8, 16, 32, 64}, UInt: {8, 16, 32, 64}, Float: {16, 32, 64}, Bfloat: {16}, Complex: {64, 128}, Bool: {8},
		Float8E3M4: {8}, Float8E4M3: {8}, Float8E4M3B11FNUZ: {8}, Float8E4M3FN: {8}, Float8E4M3FNUZ: {8}, Float8E5M2: {8},
		Float8E5M2FNUZ: {8}, Float8E8M0FNU: {8},
	}
	for code := range 256 {
		for bits := range 256 {
			dtype := DType{Code(code), uint8(bits), 1}
			switch err := dtype.Check(); {
			case slices.Contains(stored[dtype.Code], dtype.Bits):
				assert.NoError(t, err, dtype)
			case bits == 0:
				assert.ErrorIs(t, err, ErrInvalid, dtype)
			default:
				assert.ErrorIs(t, err, ErrUnsupported, dtype)
			}
		}
	}
}

func TestDTypeCheckLanes(t *testing.T) {
	assert.ErrorIs(t, DType{Float, 32, 0}.Check(), ErrInvalid)
	assert.NoError(t, DType{Float, 32, 255}.Check())
	assert.ErrorIs(t, DType{Float, 32, 256}.Check(), ErrUnsupported)
	assert.ErrorIs(t, DType{Float, 32, 65535}.Check(), ErrUnsupported)
}

func TestDTypeRefusalsNameTheType(t *testing.T) {
	assert.EqualError(t, DType{Float, 32, 300}.Check(), "dtype float32x300 has 300 lanes: lanes must be in [1, 255]")
	assert.ErrorContains(t, DType{Float4E2M1FN, 4, 2}.Check(), "float4_e2m1fnx2 has elements smaller than a byte")
	assert.ErrorContains(t, DType{Int, 4, 1}.Check(), "int4 has elements smaller than a byte")
	assert.ErrorContains(t, DType{Bool, 1, 1}.Check(), "bool1 has elements smaller than a byte")
	assert.ErrorContains(t, DType{OpaqueHandle, 64, 1}.Check(), "opaque64")
	assert.ErrorContains(t, DType{Float, 80, 1}.Check(), "float80 is not stored: float elements have 16 or 32 or 64 bits")
	assert.ErrorContains(t, DType{Code(99), 32, 1}.Check(), "code 99")
}
