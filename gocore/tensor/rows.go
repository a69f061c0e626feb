package tensor

import (
	"unsafe"
)

// The functions below move rows of width bytes between two buffers that do not overlap. Row numbers were validated when
// their binding was made; one beyond a buffer panics and leaves the rows before it moved. Where a row number occurs twice
// as a target, the last one wins.

// GatherRows sets dst[i] = src[rows[i]].
func GatherRows(dst, src []byte, rows []uint32, width int) {
	if start, ok := run(rows); ok {
		CopyRun(dst, src, 0, start, len(rows), width)
		return
	}
	if k := kernelsFor(width); k != nil {
		k.gather(dst, src, rows)
		return
	}
	for i, row := range rows {
		copy(cell(dst, i, width), cell(src, int(row), width))
	}
}

// ScatterRows sets dst[rows[i]] = src[i].
func ScatterRows(dst, src []byte, rows []uint32, width int) {
	if start, ok := run(rows); ok {
		CopyRun(dst, src, start, 0, len(rows), width)
		return
	}
	if k := kernelsFor(width); k != nil {
		k.scatter(dst, src, rows)
		return
	}
	for i, row := range rows {
		copy(cell(dst, int(row), width), cell(src, i, width))
	}
}

// CopyRowsAt sets dst[rows[i]] = src[rows[i]]: it brings an older buffer up to date by the rows that changed.
func CopyRowsAt(dst, src []byte, rows []uint32, width int) {
	if start, ok := run(rows); ok {
		CopyRun(dst, src, start, start, len(rows), width)
		return
	}
	if k := kernelsFor(width); k != nil {
		k.copyAt(dst, src, rows)
		return
	}
	for _, row := range rows {
		copy(cell(dst, int(row), width), cell(src, int(row), width))
	}
}

// CopyRun sets dst[to+i] = src[from+i] for count rows.
func CopyRun(dst, src []byte, to, from, count, width int) {
	copy(dst[to*width:(to+count)*width], src[from*width:(from+count)*width])
}

// run reports whether rows count up one by one, and from where. A look at both ends settles nearly every other list.
func run(rows []uint32) (start int, ok bool) {
	if len(rows) == 0 {
		return 0, true
	}
	first, last := rows[0], rows[len(rows)-1]
	if int(last)-int(first) != len(rows)-1 {
		return 0, false
	}
	for i, row := range rows {
		if row != first+uint32(i) {
			return 0, false
		}
	}
	return int(first), true
}

func cell(b []byte, row, width int) []byte { return b[row*width : (row+1)*width] }

// kernels are the row loops for one width. With the width a constant the compiler turns a row into a few moves, which is
// several times faster than a copy call per narrow row.
type kernels struct {
	gather, scatter, copyAt func(dst, src []byte, rows []uint32)
	strided                 func(to, from unsafe.Pointer, loop axis)
}

// The widths that occur: scalars, vectors, quaternions and matrices of 1 to 8 byte numbers.
var byWidth = [...]*kernels{
	1:   kernelsOf[[1]byte](),
	2:   kernelsOf[[2]byte](),
	4:   kernelsOf[[4]byte](),
	8:   kernelsOf[[8]byte](),
	12:  kernelsOf[[12]byte](),
	16:  kernelsOf[[16]byte](),
	24:  kernelsOf[[24]byte](),
	32:  kernelsOf[[32]byte](),
	36:  kernelsOf[[36]byte](),
	48:  kernelsOf[[48]byte](),
	64:  kernelsOf[[64]byte](),
	72:  kernelsOf[[72]byte](),
	96:  kernelsOf[[96]byte](),
	128: kernelsOf[[128]byte](),
}

// kernelsFor returns nil for the other widths: there a copy call per row has to do.
func kernelsFor(width int) *kernels {
	if width < len(byWidth) {
		return byWidth[width]
	}
	return nil
}

func kernelsOf[Row any]() *kernels {
	return &kernels{gather[Row], scatter[Row], copyAt[Row], strided[Row]}
}

// cells reinterprets bytes as rows. Row is an array of bytes, so that any address is aligned.
func cells[Row any](b []byte) []Row {
	var row Row
	return unsafe.Slice((*Row)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(row)))
}

func gather[Row any](dst, src []byte, rows []uint32) {
	d, s := cells[Row](dst)[:len(rows)], cells[Row](src)
	for i, row := range rows {
		d[i] = s[row]
	}
}

func scatter[Row any](dst, src []byte, rows []uint32) {
	d, s := cells[Row](dst), cells[Row](src)[:len(rows)]
	for i, row := range rows {
		d[row] = s[i]
	}
}

func copyAt[Row any](dst, src []byte, rows []uint32) {
	d, s := cells[Row](dst), cells[Row](src)
	for _, row := range rows {
		d[row] = s[row]
	}
}

// strided trusts its caller with the bounds: the target was measured against the view as a whole.
func strided[Row any](to, from unsafe.Pointer, loop axis) {
	for i := range loop.extent {
		*(*Row)(unsafe.Add(to, i*loop.to)) = *(*Row)(unsafe.Add(from, i*loop.from))
	}
}
