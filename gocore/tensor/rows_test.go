package tensor

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const buffer = 40 // rows

// lists are the kinds of row lists that take different ways through the kernels.
func lists(r *rand.Rand) [][]uint32 {
	random := make([]uint32, 25)
	for i := range random {
		random[i] = uint32(r.IntN(buffer))
	}
	permuted := make([]uint32, buffer)
	for i, row := range r.Perm(buffer) {
		permuted[i] = uint32(row)
	}
	return [][]uint32{
		{}, {7}, random, permuted,
		{3, 4, 5, 6}, // a run
		{3, 5, 4, 6}, // both ends of one, but none
		{6, 5, 4, 3},
		{9, 9, 9},
	}
}

func bytesFor(r *rand.Rand, width int) []byte {
	b := make([]byte, buffer*width)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// moveNaively copies one row byte by byte.
func moveNaively(dst, src []byte, to, from uint32, width int) {
	for i := range width {
		dst[int(to)*width+i] = src[int(from)*width+i]
	}
}

func TestKernelsEqualNaiveLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for width := 1; width <= 130; width++ {
		for _, rows := range lists(r) {
			src, before := bytesFor(r, width), bytesFor(r, width)
			check := func(name string, run func(dst []byte), move func(i int) (to, from uint32)) {
				got, want := slices.Clone(before), slices.Clone(before)
				run(got)
				for i := range rows {
					to, from := move(i)
					moveNaively(want, src, to, from, width)
				}
				require.Equal(t, want, got, "%s of width %d, rows %v", name, width, rows)
			}
			check("gather", func(dst []byte) { GatherRows(dst, src, rows, width) },
				func(i int) (uint32, uint32) { return uint32(i), rows[i] })
			check("scatter", func(dst []byte) { ScatterRows(dst, src, rows, width) },
				func(i int) (uint32, uint32) { return rows[i], uint32(i) })
			check("copy", func(dst []byte) { CopyRowsAt(dst, src, rows, width) },
				func(i int) (uint32, uint32) { return rows[i], rows[i] })
		}
	}
}

// A kernel must work where a row starts at an odd address, as the rows of a slice may.
func TestKernelsNeedNoAlignment(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, width := range []int{2, 4, 8, 12, 16, 64, 128} {
		src, dst := bytesFor(r, width)[1:], make([]byte, buffer*width)[1:]
		GatherRows(dst, src, []uint32{5, 2, 9}, width)
		for i, row := range []int{5, 2, 9} {
			assert.Equal(t, cell(src, row, width), cell(dst, i, width))
		}
	}
}

func TestCopyInterval(t *testing.T) {
	dst, src := []byte("........"), []byte("abcdefgh")
	CopyRun(dst, src, 1, 2, 2, 2)
	assert.Equal(t, "..efgh..", string(dst))
	CopyRun(dst, src, 4, 4, 0, 2)
	assert.Equal(t, "..efgh..", string(dst))
}

func TestRowsBeyondABufferPanic(t *testing.T) {
	for _, width := range []int{12, 13} {
		small, large := make([]byte, 4*width), make([]byte, 8*width)
		for name, move := range map[string]func(){
			"gather, source":  func() { GatherRows(large, small, []uint32{0, 4}, width) },
			"gather, target":  func() { GatherRows(small, large, []uint32{0, 2, 1, 3, 5}, width) },
			"gather, run":     func() { GatherRows(large, small, []uint32{3, 4}, width) },
			"scatter, target": func() { ScatterRows(small, large, []uint32{0, 4}, width) },
			"scatter, source": func() { ScatterRows(large, small, []uint32{0, 2, 1, 3, 5}, width) },
			"copy":            func() { CopyRowsAt(large, small, []uint32{4, 0}, width) },
			"run":             func() { CopyRun(small, large, 2, 2, 3, width) },
		} {
			assert.Panics(t, move, "%s, width %d", name, width)
		}
	}
}
