package tensor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func shuffled(n int) []uint32 {
	rows := make([]uint32, n)
	for i, row := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
		rows[i] = uint32(row)
	}
	return rows
}

func perRow(b *testing.B, rows int, run func()) {
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}

func BenchmarkRows(b *testing.B) {
	for _, n := range []int{1e4, 1e6} {
		rows := shuffled(n)
		for _, width := range []int{12, 13, 64, 128} {
			dst, src := make([]byte, n*width), make([]byte, n*width)
			for name, move := range map[string]func(dst, src []byte, rows []uint32, width int){"gather": GatherRows, "scatter": ScatterRows, "at": CopyRowsAt} {
				b.Run(fmt.Sprintf("%s/%dx%d", name, n, width), func(b *testing.B) {
					perRow(b, n, func() { move(dst, src, rows, width) })
				})
			}
		}
	}
}

func BenchmarkCopyRows(b *testing.B) {
	const n = 1_000_000
	memory, dst := make([]byte, n*16*8), make([]byte, n*16*8)
	for _, c := range []struct {
		name  string
		shape []int64
		step  []int64
		bits  uint8
	}{
		{"4 rows compact", []int64{4, 3}, nil, 32},
		{"4 rows with strides", []int64{4, 3}, []int64{3, 1}, 32},
		{"4 rows with gaps", []int64{4, 3}, []int64{4, 1}, 32},
		{"1e6 rows compact", []int64{n, 3}, nil, 32},
		{"1e6 rows with gaps", []int64{n, 3}, []int64{4, 1}, 32},
		{"1e6 rows backwards", []int64{n, 3}, []int64{-3, 1}, 32},
		{"1e6 rows Fortran", []int64{n, 3}, []int64{1, n}, 32},
		{"1e6 matrices compact", []int64{n, 4, 4}, nil, 64},
		{"1e6 matrices Fortran", []int64{n, 4, 4}, []int64{1, n, 4 * n}, 64},
		{"1e6 matrices transposed", []int64{n, 4, 4}, []int64{16, 1, 4}, 64},
	} {
		v := View{Data: unsafe.Pointer(&memory[0]), DType: DType{Float, c.bits, 1}, Shape: c.shape, Strides: c.step}
		if c.step != nil && c.step[0] < 0 {
			v.ByteOffset = uint64((c.shape[0] - 1) * -c.step[0] * int64(c.bits/8))
		}
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(v.Size()))
			perRow(b, int(c.shape[0]), func() { CopyRows(dst, v) })
		})
	}
}

func BenchmarkDescribe(b *testing.B) {
	memory := make([]float32, 12)
	v := View{Data: unsafe.Pointer(&memory[0]), Device: Device{Type: CPU}, DType: DType{Float, 32, 1}, Shape: []int64{4, 3}, Strides: []int64{3, 1}}
	for b.Loop() {
		if _, _, err := v.Fold(); err != nil {
			b.Fatal(err)
		}
		if err := v.CheckExtents(); err != nil {
			b.Fatal(err)
		}
	}
}
