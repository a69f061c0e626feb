package tensor

import (
	"fmt"
	"slices"
	"strings"
)

// Code is the kind of number in a DLPack data type.
type Code uint8

// The codes of DLPack 1.3.
const (
	Int          Code = 0
	UInt         Code = 1
	Float        Code = 2
	OpaqueHandle Code = 3
	Bfloat       Code = 4
	Complex      Code = 5
	Bool         Code = 6

	Float8E3M4        Code = 7
	Float8E4M3        Code = 8
	Float8E4M3B11FNUZ Code = 9
	Float8E4M3FN      Code = 10
	Float8E4M3FNUZ    Code = 11
	Float8E5M2        Code = 12
	Float8E5M2FNUZ    Code = 13
	Float8E8M0FNU     Code = 14
	Float6E2M3FN      Code = 15
	Float6E3M2FN      Code = 16
	Float4E2M1FN      Code = 17
)

// family describes a code: how its types are called and which widths columns store.
type family struct {
	name  string
	sized bool // the name goes on with the bits, as in "float32"
	bits  []uint8
}

var families = [...]family{
	Int:               {"int", true, []uint8{8, 16, 32, 64}},
	UInt:              {"uint", true, []uint8{8, 16, 32, 64}},
	Float:             {"float", true, []uint8{16, 32, 64}},
	OpaqueHandle:      {"opaque", true, nil},
	Bfloat:            {"bfloat", true, []uint8{16}},
	Complex:           {"complex", true, []uint8{64, 128}},
	Bool:              {"bool", true, []uint8{8}},
	Float8E3M4:        {"float8_e3m4", false, []uint8{8}},
	Float8E4M3:        {"float8_e4m3", false, []uint8{8}},
	Float8E4M3B11FNUZ: {"float8_e4m3b11fnuz", false, []uint8{8}},
	Float8E4M3FN:      {"float8_e4m3fn", false, []uint8{8}},
	Float8E4M3FNUZ:    {"float8_e4m3fnuz", false, []uint8{8}},
	Float8E5M2:        {"float8_e5m2", false, []uint8{8}},
	Float8E5M2FNUZ:    {"float8_e5m2fnuz", false, []uint8{8}},
	Float8E8M0FNU:     {"float8_e8m0fnu", false, []uint8{8}},
	Float6E2M3FN:      {"float6_e2m3fn", false, nil},
	Float6E3M2FN:      {"float6_e3m2fn", false, nil},
	Float4E2M1FN:      {"float4_e2m1fn", false, nil},
}

// MaxLanes is the widest row: DLPack's 16-bit field could hold more, the transport does not.
const MaxLanes = 255

// DType is a DLPack data type: Lanes numbers of Bits bits each. Types are the same when they compare equal.
type DType struct {
	Code  Code
	Bits  uint8
	Lanes uint16
}

// Size returns the bytes of one element, all its lanes together.
func (t DType) Size() int { return (int(t.Bits)*int(t.Lanes) + 7) / 8 }

// String returns the type as users write it: "float32", "float32x3", "bool8", "bfloat16", "float8_e5m2".
func (t DType) String() string {
	name := t.base()
	if t.Lanes != 1 {
		name += fmt.Sprintf("x%d", t.Lanes)
	}
	return name
}

// base is the name without lanes.
func (t DType) base() string {
	if int(t.Code) >= len(families) {
		return fmt.Sprintf("code%d_%dbits", t.Code, t.Bits)
	}
	f := families[t.Code]
	if f.sized {
		return fmt.Sprintf("%s%d", f.name, t.Bits)
	}
	return f.name
}

// widths lists the bits that an element can have: "16 or 32 or 64".
func (f family) widths() string {
	words := make([]string, len(f.bits))
	for i, bits := range f.bits {
		words[i] = fmt.Sprint(bits)
	}
	return strings.Join(words, " or ")
}

// Check refuses the types that columns do not store: ErrInvalid for a description without bits or lanes, ErrUnsupported
// for elements smaller than a byte, opaque handles, unknown codes, odd widths and rows of more than MaxLanes lanes.
func (t DType) Check() error {
	switch {
	case t.Bits == 0:
		return invalid("dtype %s has 0 bits: an element needs a positive bit width", t)
	case t.Lanes == 0:
		return invalid("dtype %s has 0 lanes: lanes must be in [1, %d]", t, MaxLanes)
	case t.Lanes > MaxLanes:
		return unsupported("dtype %s has %d lanes: lanes must be in [1, %d]", t, t.Lanes, MaxLanes)
	case int(t.Code) >= len(families):
		return unsupported("dtype code %d (%d bits) is unknown: expected an integer, float, bfloat, complex, bool or float8 code", t.Code, t.Bits)
	case t.Bits < 8 || t.Code >= Float6E2M3FN:
		return unsupported("dtype %s has elements smaller than a byte, which columns do not store: convert it to a byte-sized type first", t)
	case t.Code == OpaqueHandle:
		return unsupported("dtype %s holds handles of another library, which columns do not store", t)
	}
	f := families[t.Code]
	if slices.Contains(f.bits, t.Bits) {
		return nil
	}
	return unsupported("dtype %s is not stored: %s elements have %s bits", t, f.name, f.widths())
}
