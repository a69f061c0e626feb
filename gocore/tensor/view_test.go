package tensor

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeviceString(t *testing.T) {
	for device, name := range map[Device]string{
		{CPU, 0}:         "CPU",
		{CPU, 1}:         "CPU:1",
		{CUDA, 0}:        "CUDA:0",
		{CUDA, 3}:        "CUDA:3",
		{CUDAHost, 0}:    "CUDAHost:0",
		{ROCM, 1}:        "ROCM:1",
		{ROCMHost, 0}:    "ROCMHost:0",
		{CUDAManaged, 0}: "CUDAManaged:0",
		{4, 0}:           "device 4:0",
	} {
		assert.Equal(t, name, device.String())
	}
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		dtype DType
		rows  int
		row   string
	}{
		{nil, DType{Float, 32, 1}, 1, "float32"},
		{nil, DType{Float, 32, 3}, 1, "float32x3"},
		{[]int64{7}, DType{Float, 32, 1}, 7, "float32"},
		{[]int64{7}, DType{Float, 64, 16}, 7, "float64x16"},
		{[]int64{0}, DType{Bool, 8, 1}, 0, "bool8"},
		{[]int64{7, 1}, DType{Float, 32, 1}, 7, "float32"},
		{[]int64{7, 3}, DType{Float, 32, 1}, 7, "float32x3"},
		{[]int64{0, 3}, DType{Float, 32, 1}, 0, "float32x3"},
		{[]int64{7, 4}, DType{Float, 32, 4}, 7, "float32x16"},
		{[]int64{7, 4, 4}, DType{Float, 64, 1}, 7, "float64x16"},
		{[]int64{7, 1, 2, 1, 3}, DType{Int, 8, 1}, 7, "int8x6"},
		{[]int64{7, 255}, DType{UInt, 8, 1}, 7, "uint8x255"},
		{[]int64{1, 3, 5, 17}, DType{UInt, 8, 1}, 1, "uint8x255"},
		{[]int64{math.MaxInt64}, DType{UInt, 8, 1}, math.MaxInt64, "uint8"},
	} {
		rows, row, err := View{DType: c.dtype, Shape: c.shape}.Fold()
		require.NoError(t, err, c.shape)
		assert.Equal(t, c.rows, rows)
		assert.Equal(t, c.row, row.String())
	}
}

func TestFoldRefusals(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		dtype DType
		kind  error
		text  string
	}{
		{[]int64{2}, DType{Float, 32, 0}, ErrInvalid, "lanes must be in [1, 255]"},
		{[]int64{2}, DType{Float, 32, 256}, ErrUnsupported, "lanes must be in [1, 255]"},
		{[]int64{2}, DType{Int, 4, 1}, ErrUnsupported, "int4"},
		{[]int64{-1}, DType{Float, 32, 1}, ErrInvalid, "axis 0 has the negative extent -1"},
		{[]int64{2, -3}, DType{Float, 32, 1}, ErrInvalid, "shape (2, -3): axis 1 has the negative extent -3"},
		{[]int64{2, 0}, DType{Float, 32, 1}, ErrInvalid, "axis 1 is empty"},
		{[]int64{2, 3, 0}, DType{Float, 32, 1}, ErrInvalid, "axis 2 is empty"},
		{[]int64{2, 256}, DType{UInt, 8, 1}, ErrUnsupported, "more than 255 lanes"},
		{[]int64{2, 2}, DType{UInt, 8, 128}, ErrUnsupported, "shape (2, 2) of uint8x128"},
		{[]int64{2, 16, 16}, DType{UInt, 8, 1}, ErrUnsupported, "more than 255 lanes"},
		{[]int64{0, math.MaxInt64, math.MaxInt64}, DType{UInt, 8, 1}, ErrUnsupported, "more than 255 lanes"},
	} {
		_, _, err := View{DType: c.dtype, Shape: c.shape}.Fold()
		assert.ErrorIs(t, err, c.kind, c.shape)
		assert.ErrorContains(t, err, c.text)
	}
}

func TestCheckExtents(t *testing.T) {
	data := unsafe.Pointer(new([64]byte))
	float3 := DType{Float, 32, 3}
	const huge, top = int64(1) << 40, int64(math.MaxInt64)
	for _, c := range []struct {
		name string
		view View
		kind error
		text string
	}{
		{"one element", View{Data: data, DType: float3}, nil, ""},
		{"rows", View{Data: data, DType: float3, Shape: []int64{4}}, nil, ""},
		{"strided", View{Data: data, DType: float3, Shape: []int64{2, 2}, Strides: []int64{-2, 1}}, nil, ""},
		{"broadcast", View{Data: data, DType: float3, Shape: []int64{huge}, Strides: []int64{0}}, nil, ""},
		{"no elements, no data", View{DType: float3, Shape: []int64{0}}, nil, ""},
		{"no elements, other extents beyond all bounds", View{DType: float3, Shape: []int64{top, 0, top}}, nil, ""},
		{"stride of a single element", View{Data: data, DType: float3, Shape: []int64{1}, Strides: []int64{math.MinInt64}}, nil, ""},
		{"64 axes", View{Data: data, DType: float3, Shape: ones(64)}, nil, ""},

		{"65 axes", View{Data: data, DType: float3, Shape: ones(65)}, ErrUnsupported, "the shape has 65 axes: at most 64 are supported"},
		{"negative extent", View{Data: data, DType: float3, Shape: []int64{2, -1}}, ErrInvalid, "axis 1 has the negative extent -1"},
		{"negative extent beside an empty axis", View{DType: float3, Shape: []int64{0, -1}}, ErrInvalid, "negative"},
		{"too few strides", View{Data: data, DType: float3, Shape: []int64{2, 2}, Strides: []int64{1}}, ErrInvalid, "1 strides for 2 axes: give one stride per axis"},
		{"strides without axes", View{Data: data, DType: float3, Strides: []int64{1}}, ErrInvalid, "1 strides for 0 axes"},
		{"NULL", View{DType: float3, Shape: []int64{2}}, ErrInvalid, "data is NULL, but shape (2,) of float32x3 describes 24 bytes"},
		{"NULL with an offset", View{DType: float3, Shape: []int64{2}, ByteOffset: 64}, ErrInvalid, "data is NULL"},
		{"extents overflow", View{Data: data, DType: float3, Shape: []int64{huge, huge}}, ErrInvalid, "more than 2^63 bytes"},
		{"extents overflow to a small product", View{Data: data, DType: float3, Shape: []int64{1 << 32, 1 << 32, 4}}, ErrInvalid, "more than 2^63"},
		{"bytes overflow", View{Data: data, DType: float3, Shape: []int64{top}}, ErrInvalid, "more than 2^63 bytes"},
		{"stride overflows", View{Data: data, DType: float3, Shape: []int64{3}, Strides: []int64{top}}, ErrInvalid, "further than 2^63"},
		{"negative stride overflows", View{Data: data, DType: float3, Shape: []int64{3}, Strides: []int64{math.MinInt64}}, ErrInvalid, "further"},
		{"strides overflow together", View{Data: data, DType: DType{UInt, 8, 1}, Shape: []int64{2, 2}, Strides: []int64{top - 8, top - 8}},
			ErrInvalid, "further"},
		{"strides cancel out", View{Data: data, DType: DType{UInt, 8, 1}, Shape: []int64{2, 2}, Strides: []int64{top - 8, -(top - 8)}},
			ErrInvalid, "leaves the address space"},
		{"strides beyond what a process can address", View{Data: data, DType: float3, Shape: []int64{3}, Strides: []int64{1 << 54}},
			ErrInvalid, "leaves the address space"},
		{"offset overflows", View{Data: data, DType: float3, Shape: []int64{1}, ByteOffset: math.MaxUint64}, ErrInvalid, "byte_offset"},
		{"before address 0", View{Data: data, DType: DType{UInt, 8, 1}, Shape: []int64{2}, Strides: []int64{-top}}, ErrInvalid, "address space"},
	} {
		err := c.view.CheckExtents()
		if c.kind == nil {
			assert.NoError(t, err, c.name)
			continue
		}
		assert.ErrorIs(t, err, c.kind, c.name)
		assert.ErrorContains(t, err, c.text, c.name)
	}
}

func ones(n int) []int64 {
	shape := make([]int64, n)
	for i := range shape {
		shape[i] = 1
	}
	return shape
}

func TestPacked(t *testing.T) {
	memory := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	view := func(shape, strides []int64, offset uint64) View {
		return View{Data: unsafe.Pointer(&memory[0]), DType: DType{UInt, 16, 1}, Shape: shape, Strides: strides, ByteOffset: offset}
	}
	for _, v := range []View{
		view([]int64{2, 3}, nil, 2),
		view([]int64{2, 3}, []int64{3, 1}, 2),
		view([]int64{1, 2, 1, 3}, []int64{99, 3, -7, 1}, 2), // strides of single extents do not matter
	} {
		bytes, ok := v.Packed()
		require.True(t, ok)
		assert.Equal(t, memory[2:14], bytes)
		assert.Same(t, &memory[2], &bytes[0])
	}
	for _, v := range []View{
		view([]int64{2, 3}, []int64{1, 2}, 0),
		view([]int64{2, 3}, []int64{4, 1}, 0),
		view([]int64{3}, []int64{-1}, 4),
		view([]int64{3}, []int64{0}, 0),
	} {
		_, ok := v.Packed()
		assert.False(t, ok)
	}
	bytes, ok := View{DType: DType{UInt, 16, 1}, Shape: []int64{0, 3}}.Packed()
	assert.True(t, ok)
	assert.Empty(t, bytes)
}
