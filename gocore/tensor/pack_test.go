package tensor

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// arrange lays a random view over memory that it allocates: axes in random order with random gaps, some running backwards,
// some standing still (broadcast).
func arrange(r *rand.Rand, dtype DType, shape []int64) View {
	size := dtype.Size()
	strides := make([]int64, len(shape))
	before, distance := int64(0), int64(1)
	for _, axis := range r.Perm(len(shape)) {
		strides[axis] = distance
		switch r.IntN(6) {
		case 0:
			strides[axis] = 0
			continue
		case 1, 2:
			strides[axis] = -distance
			before += distance * max(shape[axis]-1, 0)
		}
		distance *= max(shape[axis], 1)
		if r.IntN(3) == 0 {
			distance += r.Int64N(4)
		}
	}
	offset := r.IntN(9)
	memory := make([]byte, offset+(int(distance)+1)*size)
	for i := range memory {
		memory[i] = byte(r.Uint32())
	}
	return View{
		Data: unsafe.Pointer(&memory[0]), DType: dtype, Shape: shape, Strides: strides, ByteOffset: uint64(offset + int(before)*size),
	}
}

// packNaively is the definition: element by element, in row-major order.
func packNaively(v View) []byte {
	size := v.DType.Size()
	packed := make([]byte, 0, v.Size())
	index := make([]int64, len(v.Shape))
	for range v.Size() / size {
		at := int64(v.ByteOffset)
		for axis, i := range index {
			at += i * v.Strides[axis] * int64(size)
		}
		packed = append(packed, unsafe.Slice((*byte)(unsafe.Add(v.Data, at)), size)...)
		for axis := len(index) - 1; axis >= 0; axis-- {
			if index[axis]++; index[axis] < v.Shape[axis] {
				break
			}
			index[axis] = 0
		}
	}
	return packed
}

func TestCopyRowsEqualsTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		dtype := DType{UInt, []uint8{8, 16, 32, 64}[r.IntN(4)], uint16(1 + r.IntN(5))}
		shape := make([]int64, r.IntN(5))
		for i := range shape {
			shape[i] = []int64{0, 1, 1, 2, 3, 4, 7}[r.IntN(7)]
		}
		v := arrange(r, dtype, shape)
		require.NoError(t, v.CheckExtents())
		dst := make([]byte, v.Size()+8)
		CopyRows(dst, v)
		require.Equal(t, packNaively(v), dst[:v.Size()], "shape %v, strides %v, %s", v.Shape, v.Strides, dtype)
		require.Equal(t, make([]byte, 8), dst[v.Size():], "bytes after the rows stay as they are")
	}
}

// Long axes are cut into tiles; the odd rest of one must not be lost.
func TestCopyRowsOfLongAxes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, rows := range []int64{tile - 1, tile, tile + 1, 3*tile + 5} {
		for _, shape := range [][]int64{{rows}, {rows, 3}, {3, rows}, {rows, 2, 3}, {2, rows, 3}, {2, 3, rows}} {
			for range 10 {
				v := arrange(r, DType{Float, 32, 1}, shape)
				dst := make([]byte, v.Size())
				CopyRows(dst, v)
				require.Equal(t, packNaively(v), dst, "shape %v, strides %v", v.Shape, v.Strides)
			}
		}
	}
}

func TestCopyRowsOfEveryWidth(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for width := 1; width <= 255; width++ {
		v := arrange(r, DType{UInt, 8, uint16(width)}, []int64{5, 3})
		dst := make([]byte, v.Size())
		CopyRows(dst, v)
		require.Equal(t, packNaively(v), dst, "width %d", width)
	}
}

func TestWalkMergesAxes(t *testing.T) {
	for _, c := range []struct {
		name           string
		shape, strides []int64
		block          int
		axes           []axis
	}{
		{"compact", []int64{5, 4, 4}, []int64{16, 4, 1}, 320, nil},
		{"no axes", nil, nil, 4, nil},
		{"rows with a gap", []int64{5, 3}, []int64{4, 1}, 12, []axis{{5, 12, 16}}},
		{"matrices with a gap", []int64{5, 4, 4}, []int64{32, 4, 1}, 64, []axis{{5, 64, 128}}},
		{"every second scalar", []int64{5}, []int64{2}, 4, []axis{{5, 4, 8}}},
		{"every second scalar of a matrix", []int64{5, 4}, []int64{8, 2}, 4, []axis{{20, 4, 8}}},
		{"backwards", []int64{5, 3}, []int64{-3, 1}, 12, []axis{{5, 12, -12}}},
		{"all backwards", []int64{5, 3}, []int64{-3, -1}, 4, []axis{{15, 4, -4}}},
		{"one row for all", []int64{5, 3}, []int64{0, 1}, 12, []axis{{5, 12, 0}}},
		{"one scalar for all", []int64{5, 3}, []int64{0, 0}, 4, []axis{{15, 4, 0}}},
		{"transposed", []int64{5, 3}, []int64{1, 5}, 4, []axis{{3, 4, 20}, {5, 12, 4}}},
	} {
		var storage [maxAxes]axis
		block, axes := View{DType: DType{Float, 32, 1}, Shape: c.shape, Strides: c.strides}.walk(&storage)
		assert.Equal(t, c.block, block, c.name)
		assert.Equal(t, append([]axis{}, c.axes...), append([]axis{}, axes...), c.name)
	}
}

func TestCopyRowsIntoTooLittleSpacePanics(t *testing.T) {
	memory := make([]byte, 16)
	v := View{Data: unsafe.Pointer(&memory[0]), DType: DType{UInt, 8, 1}, Shape: []int64{16}}
	assert.PanicsWithValue(t, "tensor: 16 bytes of rows do not fit 15 bytes", func() { CopyRows(make([]byte, 15), v) })
}
