package query

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/tensor"
)

func pick[T any](t *testing.T, code tensor.Code, op FilterOp, column []T, values ...string) []T {
	t.Helper()
	dtype := tensor.DType{Code: code, Bits: uint8(8 * unsafe.Sizeof(*new(T))), Lanes: 1}
	require.True(t, Comparable(dtype))
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(column))), len(column)*dtype.Size())
	found := []T{}
	require.NoError(t, (&Predicate{Op: op, Values: values}).Select(dtype, bytes, func(at int) { found = append(found, column[at]) }))
	return found
}

func TestSelectByNumber(t *testing.T) {
	ints := []int32{-3, 0, 2, 3, math.MaxInt32, math.MinInt32}
	assert.Equal(t, []int32{2, 3}, pick(t, tensor.Int, In, ints, "3", "2", "2.5", "99999999999999999999999", "-1e300"))
	assert.Equal(t, []int32{-3, 0, 2, math.MinInt32}, pick(t, tensor.Int, LT, ints, "2.5"))
	assert.Equal(t, []int32{3, math.MaxInt32}, pick(t, tensor.Int, GE, ints, "2.5"))
	assert.Equal(t, ints, pick(t, tensor.Int, LE, ints, "inf"))
	assert.Empty(t, pick(t, tensor.Int, LE, ints, "-inf"))
	assert.Empty(t, pick(t, tensor.Int, In, ints))

	big := []uint64{0, 1 << 53, 1<<53 + 1, math.MaxUint64}
	assert.Equal(t, []uint64{1<<53 + 1}, pick(t, tensor.UInt, In, big, "9007199254740993"), "integers compare exactly")
	assert.Equal(t, []uint64{math.MaxUint64}, pick(t, tensor.UInt, GE, big, "18446744073709551615"))
	assert.Empty(t, pick(t, tensor.UInt, LT, big, "-0.5"))
	assert.Equal(t, big, pick(t, tensor.UInt, LT, big, "18446744073709551616"))

	tenth := []float32{0.1, 0.25, float32(math.NaN()), float32(math.Inf(1))}
	assert.Equal(t, []float32{0.1}, pick(t, tensor.Float, In, tenth, "0.1"), "a number is meant as the column has it")
	assert.Empty(t, pick(t, tensor.Float, LT, tenth, "0.1"))
	assert.Equal(t, []float32{0.1, 0.25}, pick(t, tensor.Float, LT, tenth, "1e300"), "not a number is in no order")
	assert.Equal(t, []float64{0.5, 1}, pick(t, tensor.Float, GT, []float64{0.25, 0.5, 1}, ".25"))
	assert.Equal(t, []uint8{1}, pick(t, tensor.Bool, In, []uint8{0, 1}, "true"))
	assert.Equal(t, []uint8{0}, pick(t, tensor.Bool, In, []uint8{0, 1}, "False"))
	assert.Equal(t, []uint8{0, 1}, pick(t, tensor.Bool, LE, []uint8{0, 1}, "1"))
}

// Every width of integer, every operator, against rational numbers.
func TestIntegersAgainstRationals(t *testing.T) {
	t.Run("int8", againstRationals[int8](tensor.Int))
	t.Run("int16", againstRationals[int16](tensor.Int))
	t.Run("int32", againstRationals[int32](tensor.Int))
	t.Run("int64", againstRationals[int64](tensor.Int))
	t.Run("uint8", againstRationals[uint8](tensor.UInt))
	t.Run("uint16", againstRationals[uint16](tensor.UInt))
	t.Run("uint32", againstRationals[uint32](tensor.UInt))
	t.Run("uint64", againstRationals[uint64](tensor.UInt))
}

func againstRationals[T integer](code tensor.Code) func(t *testing.T) {
	return func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, uint64(unsafe.Sizeof(T(0)))))
		least, most := limits[T]()
		column := []T{least, least + 1, 0, 1, 2, most / 2, most - 1, most}
		numbers := []string{"0", "-1", "1.5", "-0.5", "1e40", "-1e40", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
			"18446744073709551615", "18446744073709551616", "127", "128", "-128", "-129", "255", "255.5", "256", "4294967295", "-2147483649"}
		for range 60 {
			numbers = append(numbers, strconv.FormatFloat(float64(random.IntN(600)-300)/2, 'g', -1, 64))
			column = append(column, T(random.Uint64()))
		}
		for _, text := range numbers {
			number, ok := new(big.Rat).SetString(text)
			require.True(t, ok)
			for op, wanted := range map[FilterOp]func(int) bool{
				LT: func(c int) bool { return c < 0 }, LE: func(c int) bool { return c <= 0 },
				GT: func(c int) bool { return c > 0 }, GE: func(c int) bool { return c >= 0 }, In: func(c int) bool { return c == 0 },
			} {
				expected := []T{}
				for _, value := range column {
					exactly := new(big.Rat).SetInt(new(big.Int).SetUint64(uint64(value)))
					if value < 0 {
						exactly.SetInt64(int64(value))
					}
					if wanted(exactly.Cmp(number)) {
						expected = append(expected, value)
					}
				}
				require.Equal(t, expected, pick(t, code, op, column, text), "%s %s", op, text)
			}
		}
	}
}

func TestSelectRefusals(t *testing.T) {
	dtype := tensor.DType{Code: tensor.Float, Bits: 32, Lanes: 1}
	refused := func(op FilterOp, part string, values ...string) {
		t.Helper()
		p := Predicate{Op: op, Values: values}
		require.NoError(t, p.CheckValues())
		assert.ErrorContains(t, p.Select(dtype, nil, nil), part)
	}
	refused(In, `values[1]: "two" is not a number`, "1", "two")
	refused(LT, `"nan" is not a number`, "nan")
	refused(LT, `"" is not a number`, "")
	dtype = tensor.DType{Code: tensor.Int, Bits: 8, Lanes: 1}
	refused(LT, `"true" is not a number`, "true")
	refused(LT, `"0x" is not a number`, "0x")
}

func TestNumbersOfValues(t *testing.T) {
	for _, c := range []struct {
		op   FilterOp
		n    int
		text string
	}{
		{Has, 0, ""}, {Has, 2, ""}, {In, 1, ""}, {Contains, 3, ""}, {Prefix, 1, ""}, {LT, 1, ""}, {GE, 1, ""},
		{In, 0, "IN needs at least one value, got none"}, {Contains, 0, "CONTAINS needs"}, {Prefix, 0, "PREFIX needs"},
		{LT, 0, "LT takes exactly one value, got 0"}, {GE, 2, "GE takes exactly one value, got 2"},
	} {
		err := (&Predicate{Op: c.op, Values: make([]string, c.n)}).CheckValues()
		if c.text == "" {
			assert.NoError(t, err, "%s %d", c.op, c.n)
		} else {
			assert.ErrorContains(t, err, c.text)
		}
	}
}

func TestComparable(t *testing.T) {
	for text, dtype := range map[string]tensor.DType{
		"lanes":     {Code: tensor.Float, Bits: 32, Lanes: 3},
		"half":      {Code: tensor.Float, Bits: 16, Lanes: 1},
		"bfloat":    {Code: tensor.Bfloat, Bits: 16, Lanes: 1},
		"a complex": {Code: tensor.Complex, Bits: 64, Lanes: 1},
	} {
		assert.False(t, Comparable(dtype), text)
	}
	assert.Equal(t, "CONTAINS", Contains.String())
	assert.Equal(t, "operator 8", FilterOp(8).String())
}
