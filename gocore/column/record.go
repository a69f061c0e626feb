package column

import (
	"math"
	"slices"

	"ovstage.dev/ovstage/gocore/invariants"
	"ovstage.dev/ovstage/gocore/memory"
)

// record is one unsealed write: packed bytes for rows, in the order of rows. Without a block it is a delete.
type record struct {
	ordinal uint64
	rows    Rows
	block   memory.Block
	arena   Arena // array columns

	weight    int // bytes that this record and those of its ordinal before it keep alive
	condensed int // what of the weight was left when they were last condensed
}

// Latest is above every ordinal: as of it a value is the newest that was written, sealed or not.
const Latest uint64 = math.MaxUint64

func (r record) tombstone() bool { return !r.block.Valid() }

// size is the memory that a record keeps alive.
func (r record) size() int {
	return recordCost + 4*len(r.rows.List()) + r.block.Capacity() + r.arena.Block.Capacity()
}

// mustFit states that a record names rows of the column and has bytes for them.
func (r record) mustFit(rows, width int) {
	if invariants.Enabled {
		invariants.Check(r.rows.End() <= rows, "a record names row %d of %d", r.rows.End()-1, rows)
		invariants.Check(r.tombstone() || r.block.Refs() > 0, "the block of a record of %d rows was released", r.rows.Len())
		if !r.tombstone() {
			mustHold(r.block.Bytes(), r.rows.Len(), width)
		}
	}
}

// recordCost is what a record costs beside its bytes: itself, and the heads of its blocks.
const recordCost = 256

// brings reports whether any of the records brings bytes.
func brings(records []record) bool {
	return slices.ContainsFunc(records, func(r record) bool { return !r.tombstone() })
}

// overlay writes those rows of r that fall into [start, end) over dst.
func overlay(dst []byte, start, end int, r record, width int) {
	if r.tombstone() {
		r.rows.each(func(row int) {
			if row >= start && row < end {
				clear(dst[(row-start)*width : (row-start+1)*width])
			}
		})
		return
	}
	src := r.block.Bytes()
	if from, ok := r.rows.Run(); ok {
		lo, hi := max(from, start), min(r.rows.End(), end)
		if lo < hi {
			copy(dst[(lo-start)*width:(hi-start)*width], src[(lo-from)*width:])
			memory.Copied((hi - lo) * width)
		}
		return
	}
	for i, row := range r.rows.List() {
		if int(row) >= start && int(row) < end {
			copy(dst[(int(row)-start)*width:(int(row)-start+1)*width], src[i*width:])
		}
	}
}

// recent knows which rows were written at the ordinal that was written last, so that a write that repeats another is found
// without a search.
type recent struct {
	ordinal uint64
	rows    map[Rows]struct{}
}

// maxRecent bounds what recent knows. A client that repeats more writes loses nothing: their records are condensed.
const maxRecent = 1024

// by notes a write and reports whether it may repeat an earlier one of its ordinal.
func (r *recent) by(rows Rows, ordinal uint64) bool {
	if r.rows == nil {
		r.rows = map[Rows]struct{}{}
	}
	unknown := r.ordinal != ordinal // others may have been written at it before this one was noted
	if unknown || len(r.rows) == maxRecent {
		clear(r.rows)
		r.ordinal = ordinal
	}
	_, again := r.rows[rows]
	r.rows[rows] = struct{}{}
	return unknown || again || rows.covers(1)
}
