package tensor

import (
	"fmt"
	"slices"
	"unsafe"
)

// CopyRows packs the elements of v, in row-major order, into the first v.Size() bytes of dst. Strides may be anything that
// CheckExtents accepts: negative, zero (broadcast), permuted. Packed memory is one copy. The view must have passed
// CheckExtents and lie in host memory, and dst must not overlap it.
func CopyRows(dst []byte, v View) {
	n := v.Size()
	if n > len(dst) {
		panic(fmt.Sprintf("tensor: %d bytes of rows do not fit %d bytes", n, len(dst)))
	}
	if packed, ok := v.Packed(); ok {
		copy(dst, packed)
		return
	}
	var storage [maxAxes]axis
	block, axes := v.walk(&storage)
	loop, axes := takeLongest(axes)
	var position [maxAxes]int // all zero again after each full turn
	for start := 0; start < loop.extent; start += tile {
		count := min(tile, loop.extent-start)
		at := offsets{start * loop.to, start * loop.from}
		for more := true; more; more = at.advance(&position, axes) {
			to, from := unsafe.Pointer(&dst[at.to]), unsafe.Add(v.first(), at.from)
			copyBlocks(to, from, axis{count, loop.to, loop.from}, block)
		}
	}
}

// tile bounds how many steps of the longest axis are taken before the shorter axes move on. The rows it touches stay in the
// cache, where a Fortran-ordered source would else walk all of the target once per component.
const tile = 512

// axis is one loop of a copy: extent blocks, and the distance in bytes from one to the next on both sides.
type axis struct{ extent, to, from int }

// walk reduces the view to blocks of packed bytes and the axes that step between them, innermost first: extents of 1
// disappear, and an axis that goes on where the one inside it ends is merged with it. What is left decides the speed:
// no axis is one copy, one axis a single loop over rows. The view must have elements.
func (v View) walk(storage *[maxAxes]axis) (block int, axes []axis) {
	size := v.DType.Size()
	block, axes = size, storage[:0]
	packed := size // the distance between neighbours on this axis in packed memory
	for i := len(v.Shape) - 1; i >= 0; i-- {
		extent, stride := int(v.Shape[i]), packed
		if v.Strides != nil {
			stride = int(v.Strides[i]) * size
		}
		last := len(axes) - 1
		switch {
		case extent == 1:
		case last < 0 && stride == block:
			block *= extent
		case last >= 0 && stride == axes[last].from*axes[last].extent:
			axes[last].extent *= extent
		default:
			axes = append(axes, axis{extent, packed, stride})
		}
		packed *= extent
	}
	return block, axes
}

// takeLongest removes the longest axis: it becomes the inner loop, so that the cost of starting a loop is paid least often.
func takeLongest(axes []axis) (axis, []axis) {
	at := 0
	for i, a := range axes {
		if a.extent > axes[at].extent {
			at = i
		}
	}
	longest := axes[at]
	return longest, slices.Delete(axes, at, at+1)
}

// offsets is where the current block begins, in bytes, on both sides.
type offsets struct{ to, from int }

// advance steps an odometer over the axes. It reports false after the last position.
func (o *offsets) advance(position *[maxAxes]int, axes []axis) bool {
	for i, a := range axes {
		position[i]++
		o.to += a.to
		o.from += a.from
		if position[i] < a.extent {
			return true
		}
		position[i] = 0
		o.to -= a.to * a.extent
		o.from -= a.from * a.extent
	}
	return false
}

// copyBlocks runs one loop.
func copyBlocks(to, from unsafe.Pointer, loop axis, block int) {
	if k := kernelsFor(block); k != nil {
		k.strided(to, from, loop)
		return
	}
	for i := range loop.extent {
		copy(unsafe.Slice((*byte)(unsafe.Add(to, i*loop.to)), block), unsafe.Slice((*byte)(unsafe.Add(from, i*loop.from)), block))
	}
}
