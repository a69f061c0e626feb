package scene

import (
	"unsafe"
)

// matrix is a transform: 4 rows of 4, applied to row vectors from the right, so that elements 12, 13, 14 are the translation
// and a child's world transform is its local one times its parent's (the convention of USD's GfMatrix4d).
type matrix [16]float64

const matrixSize = int(unsafe.Sizeof(matrix{}))

// multiply sets m to a times b.
func (m *matrix) multiply(a, b *matrix) {
	for r := 0; r < 16; r += 4 {
		x, y, z, w := a[r], a[r+1], a[r+2], a[r+3]
		m[r] = x*b[0] + y*b[4] + z*b[8] + w*b[12]
		m[r+1] = x*b[1] + y*b[5] + z*b[9] + w*b[13]
		m[r+2] = x*b[2] + y*b[6] + z*b[10] + w*b[14]
		m[r+3] = x*b[3] + y*b[7] + z*b[11] + w*b[15]
	}
}

// same compares bits, so that a value that is no number equals itself.
func (m *matrix) same(o *matrix) bool {
	return *(*[16]uint64)(unsafe.Pointer(m)) == *(*[16]uint64)(unsafe.Pointer(o))
}

// matrices looks at the bytes of a column as transforms.
func matrices(bytes []byte) []matrix {
	return unsafe.Slice((*matrix)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/matrixSize)
}
