// Package tensor describes memory the way DLPack does and moves rows between such descriptions: data types, shapes, lanes,
// the fold of trailing axes into lanes, and the row kernels. It owns no memory and knows neither columns nor C types.
package tensor

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unsafe"
)

// Device says where memory lives, in DLPack's numbers.
type Device struct{ Type, ID int32 }

// The device types of DLPack that have a name here.
const (
	CPU         int32 = 1
	CUDA        int32 = 2
	CUDAHost    int32 = 3
	ROCM        int32 = 10
	ROCMHost    int32 = 11
	CUDAManaged int32 = 13
)

// String returns "CPU", "CUDA:0", "CUDAHost:0", or "device 4:0" for a type without a name here.
func (d Device) String() string {
	var name string
	switch d.Type {
	case CPU:
		if d.ID == 0 {
			return "CPU"
		}
		name = "CPU"
	case CUDA:
		name = "CUDA"
	case CUDAHost:
		name = "CUDAHost"
	case ROCM:
		name = "ROCM"
	case ROCMHost:
		name = "ROCMHost"
	case CUDAManaged:
		name = "CUDAManaged"
	default:
		name = fmt.Sprintf("device %d", d.Type)
	}
	return fmt.Sprintf("%s:%d", name, d.ID)
}

// maxAxes is NumPy's limit too; with it every walk over a view needs only fixed storage.
const maxAxes = 64

// View describes memory that something else owns and keeps alive: a DLPack tensor without its C layout.
type View struct {
	Data       unsafe.Pointer
	Device     Device
	DType      DType
	Shape      []int64 // one extent per axis; empty for a single element
	Strides    []int64 // per axis, in elements of all lanes; nil for compact row-major
	ByteOffset uint64  // from Data to the first element
}

// Axes are extents or strides as messages show them: "(2, 3)", and "(2,)" where there is one.
type Axes []int64

func (a Axes) String() string {
	if len(a) == 1 {
		return fmt.Sprintf("(%d,)", a[0])
	}
	words := make([]string, len(a))
	for i, n := range a {
		words[i] = strconv.FormatInt(n, 10)
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// Fold reads the view as rows of a fixed column: axis 0 counts the rows, every further axis multiplies into the lanes and
// is forgotten. A view without axes is one row. So (N, 3) float32 and (N,) float32x3 are the same rows, but (3N,) float32
// is 3N of them.
func (v View) Fold() (rows int, row DType, err error) {
	if err := v.DType.Check(); err != nil {
		return 0, DType{}, err
	}
	rows = 1
	if len(v.Shape) > 0 {
		if v.Shape[0] < 0 {
			return 0, DType{}, v.negativeExtent(0)
		}
		rows = int(v.Shape[0])
	}
	lanes := uint64(v.DType.Lanes)
	for axis := 1; axis < len(v.Shape); axis++ {
		switch extent := v.Shape[axis]; {
		case extent < 0:
			return 0, DType{}, v.negativeExtent(axis)
		case extent == 0:
			return 0, DType{}, invalid("shape %v: axis %d is empty, so a row would have no lanes; only axis 0, the rows, may be 0", Axes(v.Shape), axis)
		case uint64(extent) > MaxLanes/lanes:
			return 0, DType{}, unsupported("shape %v of %s: the axes after the first fold into more than %d lanes per row; "+
				"write it as several attributes, or as an array attribute", Axes(v.Shape), v.DType, MaxLanes)
		default:
			lanes *= uint64(extent)
		}
	}
	row = v.DType
	row.Lanes = uint16(lanes)
	return rows, row, nil
}

func (v View) negativeExtent(axis int) error {
	return invalid("shape %v: axis %d has the negative extent %d", Axes(v.Shape), axis, v.Shape[axis])
}

// CheckExtents refuses a view that no memory can match: negative extents, strides that do not fit the shape, a NULL address
// with elements behind it, and extents or strides whose bytes overflow 64 bits or wrap around the address space. Whether
// the memory is really there, only its owner knows. Everything below relies on this check.
func (v View) CheckExtents() error {
	if len(v.Shape) > maxAxes {
		return unsupported("the shape has %d axes: at most %d are supported", len(v.Shape), maxAxes)
	}
	empty := false
	for axis, extent := range v.Shape {
		if extent < 0 {
			return v.negativeExtent(axis)
		}
		empty = empty || extent == 0
	}
	if v.Strides != nil && len(v.Strides) != len(v.Shape) {
		return invalid("%d strides for %d axes: give one stride per axis, or none for compact rows", len(v.Strides), len(v.Shape))
	}
	if empty {
		return nil
	}

	size := uint64(v.DType.Size())
	total := size
	for _, extent := range v.Shape {
		if total = product(total, uint64(extent)); total > math.MaxInt64 {
			return invalid("shape %v of %s describes more than 2^63 bytes", Axes(v.Shape), v.DType)
		}
	}
	if v.Data == nil && total > 0 {
		return invalid("data is NULL, but shape %v of %s describes %d bytes", Axes(v.Shape), v.DType, total)
	}

	// The bytes reached before and after the first element.
	before, after := uint64(0), total
	if v.Strides != nil {
		after = size
		for axis, extent := range v.Shape {
			stride := v.Strides[axis]
			reach := product(product(uint64(extent-1), magnitude(stride)), size)
			if stride < 0 {
				before = sum(before, reach)
			} else {
				after = sum(after, reach)
			}
		}
		if before > math.MaxInt64 || after > math.MaxInt64 {
			return invalid("strides %v over shape %v of %s reach further than 2^63 bytes", Axes(v.Strides), Axes(v.Shape), v.DType)
		}
	}
	first := sum(uint64(uintptr(v.Data)), v.ByteOffset)
	if sum(first, after) > addressSpace || before > first {
		return invalid("data %p with byte_offset %d, strides %s and shape %v of %s leaves the address space; strides count elements, not bytes",
			v.Data, v.ByteOffset, v.stridesText(), Axes(v.Shape), v.DType)
	}
	return nil
}

func (v View) stridesText() string {
	if v.Strides == nil {
		return "none"
	}
	return Axes(v.Strides).String()
}

// addressSpace is the end of what a process can address: 47 bits on x86-64 and 48 on AArch64, 57 where the processor has
// five levels of page tables. A read beyond it is a fault that can't be recovered from.
const addressSpace = 1 << 56

// product and sum saturate, so that a chain of them needs one comparison at its end.
func product(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}

func sum(a, b uint64) uint64 {
	total, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return total
}

func magnitude(stride int64) uint64 {
	if stride < 0 {
		return -uint64(stride)
	}
	return uint64(stride)
}

// Size returns the bytes of all elements when they are packed.
func (v View) Size() int {
	total := v.DType.Size()
	for _, extent := range v.Shape {
		total *= int(extent)
	}
	return total
}

// Row returns one step along axis 0. The view must have passed CheckExtents.
func (v View) Row(i int) View {
	row := v
	row.Shape = v.Shape[1:]
	if v.Strides == nil {
		elements := 1
		for _, extent := range row.Shape {
			elements *= int(extent)
		}
		row.Data = unsafe.Add(v.Data, i*elements*v.DType.Size())
		return row
	}
	row.Data, row.Strides = unsafe.Add(v.Data, i*int(v.Strides[0])*v.DType.Size()), v.Strides[1:]
	return row
}

// Packed returns the view's own memory when its elements already lie packed in row-major order, and ok false otherwise.
func (v View) Packed() (bytes []byte, ok bool) {
	n := v.Size()
	if n == 0 {
		return nil, true
	}
	if v.Strides != nil {
		distance := int64(1)
		for axis := len(v.Shape) - 1; axis >= 0; axis-- {
			if v.Shape[axis] != 1 && v.Strides[axis] != distance {
				return nil, false
			}
			distance *= v.Shape[axis]
		}
	}
	return unsafe.Slice((*byte)(v.first()), n), true
}

func (v View) first() unsafe.Pointer { return unsafe.Add(v.Data, v.ByteOffset) }
