package query

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// FilterOp says how a predicate compares. The numbers are those of the C ABI.
type FilterOp uint32

// The operators.
const (
	Has      FilterOp = 0 // the prim carries the attribute; values do not matter
	In       FilterOp = 1 // equals one of the values
	Contains FilterOp = 2 // holds one of the values
	Prefix   FilterOp = 3 // begins with one of the values, byte by byte
	LT       FilterOp = 4 // these compare with the one value
	LE       FilterOp = 5
	GT       FilterOp = 6
	GE       FilterOp = 7
)

var filterOps = [...]string{"HAS", "IN", "CONTAINS", "PREFIX", "LT", "LE", "GT", "GE"}

func (op FilterOp) String() string {
	if int(op) < len(filterOps) {
		return filterOps[op]
	}
	return fmt.Sprintf("operator %d", int32(op))
}

// Orders reports whether the operator is one of LT, LE, GT, GE.
func (op FilterOp) Orders() bool { return op >= LT && op <= GE }

// Predicate is a condition on one attribute. Values are text, whatever the attribute holds: none for Has, one for an ordering,
// at least one for the others.
type Predicate struct {
	Attribute pathdict.Token
	Op        FilterOp
	Values    []string
}

// CheckValues refuses a number of values that the operator can't take. An empty list is a mistake, not a way to select nothing.
func (p *Predicate) CheckValues() error {
	switch n := len(p.Values); {
	case p.Op.Orders() && n != 1:
		return fmt.Errorf("%s takes exactly one value, got %d", p.Op, n)
	case p.Op != Has && n == 0:
		return fmt.Errorf("%s needs at least one value, got none; HAS asks for the attribute alone", p.Op)
	}
	return nil
}

// Comparable reports whether values of a type can be compared with numbers.
func Comparable(dtype tensor.DType) bool {
	switch {
	case dtype.Lanes != 1:
		return false
	case dtype.Code == tensor.Float:
		return dtype.Bits >= 32
	}
	return dtype.Code == tensor.Int || dtype.Code == tensor.UInt || dtype.Code == tensor.Bool
}

// Select calls found with the index of each packed value that satisfies a predicate with In or an ordering, checked, for a
// Comparable type. A number is meant as the column has it: "0.1" equals a float32 that was written as 0.1. Integers compare
// exactly, whether the number is one or not; booleans are 0 and 1, also called false and true.
func (p *Predicate) Select(dtype tensor.DType, values []byte, found func(at int)) error {
	switch dtype.Code {
	case tensor.Float:
		if dtype.Bits == 32 {
			return choose(p, values, fraction[float32], found)
		}
		return choose(p, values, fraction[float64], found)
	case tensor.Bool:
		return choose(p, values, truth, found)
	case tensor.Int:
		switch dtype.Bits {
		case 8:
			return choose(p, values, whole[int8], found)
		case 16:
			return choose(p, values, whole[int16], found)
		case 32:
			return choose(p, values, whole[int32], found)
		}
		return choose(p, values, whole[int64], found)
	}
	switch dtype.Bits {
	case 8:
		return choose(p, values, whole[uint8], found)
	case 16:
		return choose(p, values, whole[uint16], found)
	case 32:
		return choose(p, values, whole[uint32], found)
	}
	return choose(p, values, whole[uint64], found)
}

// choose tests every value. read turns the text of a number into a bound.
func choose[T cmp.Ordered](p *Predicate, values []byte, read func(string) (bound[T], error), found func(at int)) error {
	bounds := make([]bound[T], len(p.Values))
	for i, text := range p.Values {
		var err error
		if bounds[i], err = read(text); err != nil {
			return fmt.Errorf("values[%d]: %w", i, err)
		}
	}
	column := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(values))), len(values)/int(unsafe.Sizeof(*new(T))))
	if p.Op == In {
		equal := exact(bounds)
		for at, value := range column {
			if _, ok := slices.BinarySearch(equal, value); ok {
				found(at)
			}
		}
		return nil
	}
	limit := bounds[0]
	for at, value := range column {
		if limit.admits(p.Op, value) {
			found(at)
		}
	}
	return nil
}

// bound is a number as seen from a type T: the largest T that is not above it, and whether the two are equal.
type bound[T cmp.Ordered] struct {
	floor T
	equal bool
	under bool // every T is above the number; floor means nothing
}

func (b bound[T]) admits(op FilterOp, value T) bool {
	below := value < b.floor || value == b.floor && !b.equal
	same := value == b.floor && b.equal
	above := value > b.floor
	if b.under {
		below, same, above = false, false, true
	}
	switch op {
	case LT:
		return below
	case LE:
		return below || same
	case GT:
		return above
	}
	return above || same
}

// exact returns, ascending, the values of T that equal one of the numbers.
func exact[T cmp.Ordered](bounds []bound[T]) []T {
	var list []T
	for _, b := range bounds {
		if b.equal {
			list = append(list, b.floor)
		}
	}
	slices.Sort(list)
	return list
}

func fraction[T float32 | float64](text string) (bound[T], error) {
	number, err := strconv.ParseFloat(text, int(8*unsafe.Sizeof(T(0))))
	if math.IsNaN(number) || err != nil && !math.IsInf(number, 0) { // a number beyond the range of T is infinite
		return bound[T]{}, notANumber(text)
	}
	return bound[T]{floor: T(number), equal: true}, nil
}

func truth(text string) (bound[uint8], error) {
	switch { // in any case: Python's are called True and False
	case strings.EqualFold(text, "false"):
		text = "0"
	case strings.EqualFold(text, "true"):
		text = "1"
	}
	return whole[uint8](text)
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func whole[T integer](text string) (bound[T], error) {
	least, most := limits[T]()
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		switch {
		case number < 0 && (least == 0 || number < int64(least)):
			return bound[T]{under: true}, nil
		case number >= 0 && uint64(number) > uint64(most):
			return bound[T]{floor: most}, nil
		}
		return bound[T]{floor: T(number), equal: true}, nil
	}
	if number, err := strconv.ParseUint(text, 10, 64); err == nil {
		if number > uint64(most) {
			return bound[T]{floor: most}, nil
		}
		return bound[T]{floor: T(number), equal: true}, nil
	}
	number, err := strconv.ParseFloat(text, 64)
	switch floor := math.Floor(number); {
	case math.IsNaN(number) || err != nil && !math.IsInf(number, 0):
		return bound[T]{}, notANumber(text)
	case number < float64(least):
		return bound[T]{under: true}, nil
	case number >= float64(most)+1: // exact, or the next power of two in both roundings
		return bound[T]{floor: most}, nil
	default:
		return bound[T]{floor: T(floor), equal: floor == number}, nil
	}
}

func limits[T integer]() (least, most T) {
	if ^T(0) > 0 {
		return 0, ^T(0)
	}
	most = T(uint64(1)<<(8*unsafe.Sizeof(T(0))-1) - 1)
	return -most - 1, most
}

func notANumber(text string) error {
	return fmt.Errorf("%q is not a number, but the attribute holds numbers", text)
}
