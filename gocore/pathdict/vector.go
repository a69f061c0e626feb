package pathdict

import (
	"sync/atomic"
	"unsafe"

	"ovstage.dev/ovstage/gocore/memory"
)

const segmentSize = 1 << 13

// vector is an append-only sequence of records. It grows by whole segments, so that a record never moves: growing copies
// nothing, and readers need no lock. One writer at a time, under the dictionary's lock, pushes records and then reveals
// the new length. A reader that has seen an index below the visible length may read that record until close.
//
// What grows with a scene must not lie on the Go heap, where missing memory ends the process: all segments but the first are
// blocks. Records hold no pointers.
type vector[T any] struct {
	segments atomic.Pointer[[]*[segmentSize]T]
	blocks   []memory.Block // those of the segments, but for the first
	length   uint32         // the writer's
	visible  atomic.Uint32  // the readers'
}

func (v *vector[T]) at(i uint32) *T {
	return &(*v.segments.Load())[i/segmentSize][i%segmentSize]
}

// has reports whether readers may look at record i.
func (v *vector[T]) has(i uint64) bool { return i < uint64(v.visible.Load()) }

// reserve makes room for one record.
func (v *vector[T]) reserve() error {
	if v.length < uint32(segmentSize*(1+len(v.blocks))) {
		return nil
	}
	block, err := memory.Alloc(int(unsafe.Sizeof([segmentSize]T{})), memory.Strings)
	if err != nil {
		return err
	}
	v.blocks = append(v.blocks, block)
	v.grow((*[segmentSize]T)(block.Pointer()))
	return nil
}

// push appends a record for which there is room; there always is for the first. Readers see it after reveal.
func (v *vector[T]) push(record T) uint32 {
	i := v.length
	if i == 0 {
		v.grow(new([segmentSize]T))
	}
	*v.at(i) = record
	v.length++
	return i
}

func (v *vector[T]) reveal() { v.visible.Store(v.length) }

func (v *vector[T]) grow(segment *[segmentSize]T) {
	var segments []*[segmentSize]T
	if old := v.segments.Load(); old != nil {
		segments = *old
	}
	segments = append(segments, segment) // in place, perhaps: a reader's slice ends before it
	v.segments.Store(&segments)
}

func (v *vector[T]) close() {
	v.visible.Store(0)
	v.length = 0
	v.segments.Store(nil)
	for _, block := range v.blocks {
		block.Release()
	}
	v.blocks = nil
}

func (v *vector[T]) bytes() int64 {
	var record T
	segments := (int64(v.length) + segmentSize - 1) / segmentSize
	return segments * segmentSize * int64(unsafe.Sizeof(record))
}
