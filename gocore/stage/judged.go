package stage

import (
	"unsafe"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/tensor"
)

// judged is a write that was found possible: what a client asked for, on its way to become a record.
type judged struct {
	name      pathdict.Token // of the attribute
	attribute *attribute     // nil until it is created
	prims     *pathdict.List // the prims that are written: all of the query, or those that count and mask select
	view      tensor.View
	source    []uint32   // payload row of each written prim; nil = row k for prim k
	mask      bitset.Set // which of the leading prims are written; while it is judged
	schema    column.Schema
	column    *bound // nil until it is created
	fresh     bool   // created for this write, and not yet the attribute's
	growth    query.Growth
	block     memory.Block
	rows      column.Rows
	added     []uint32 // path indices that got their first row
	owned     memory.Block

	arrays  []tensor.View // array columns: the values of each written prim, in the client's memory
	arena   column.Arena  // and where they are copied to
	scratch memory.Block  // a tensor that had to be packed before it could be cut
}

// keep narrows a write to the prims at some positions.
func (w *judged) keep(dict *pathdict.Dictionary, wanted func(position int) bool) {
	n := w.prims.Len()
	mask, source, arrays := bitset.New(n), make([]uint32, 0, n), w.arrays[:0:0]
	for i := range n {
		if !wanted(i) {
			continue
		}
		mask.Add(i)
		switch {
		case w.schema.Array:
			arrays = append(arrays, w.arrays[i])
		case w.source != nil:
			source = append(source, w.source[i])
		default:
			source = append(source, uint32(i))
		}
	}
	if kept := dict.Sublist(w.prims, n, mask); kept != w.prims {
		w.prims, w.source, w.arrays = kept, source, arrays
	}
}

// release ends the references that the write still holds.
func (w *judged) release() {
	w.block.Release()
	w.arena.Block.Release()
	w.scratch.Release()
	w.growth.Drop()
}

// adoptable reports whether the tensor's own memory might become the column's, as far as the tensor decides it.
func (w *judged) adoptable() bool {
	if !w.owned.Valid() || w.schema.Array || w.source != nil || memory.Guarding() { // others' pages cannot be guarded
		return false
	}
	bytes, ok := w.view.Packed()
	return ok && len(bytes) > 0 && uintptr(unsafe.Pointer(&bytes[0]))%ownedAlignment == 0 && unsafe.Pointer(&bytes[0]) == w.owned.Pointer()
}

// ownedAlignment is what memory must have to be adopted: a cache line, so that every consumer can read it in place.
const ownedAlignment = 64

// makeRoom takes the blocks into which the payload is copied.
func (w *judged) makeRoom() (err error) {
	switch {
	case w.schema.Array:
		total := 0
		for _, values := range w.arrays {
			if total += values.Size(); total < 0 || total > memory.Largest {
				return &memory.OutOfMemory{Size: total, Purpose: memory.Columns}
			}
		}
		w.block, w.arena, err = newArrays(len(w.arrays), total, false)
	case w.column != nil:
		w.block, err = w.column.Buffer(w.prims.Len()*w.schema.DType.Size(), false)
	default:
		w.block, err = memory.Alloc(w.prims.Len()*w.schema.DType.Size(), memory.Columns)
	}
	return err
}

// fill copies the payload. It touches nothing of the stage's.
func (w *judged) fill() {
	width := w.schema.DType.Size()
	switch {
	case !w.block.Valid(): // the payload's own memory may be adopted
		return
	case w.schema.Array:
		w.fillArrays()
		return
	case w.source != nil:
		w.gatherIn(width)
	default:
		tensor.CopyRows(w.block.Bytes(), w.view)
	}
	memory.Copied(w.prims.Len() * width)
}

// gatherIn copies the payload rows that the prims ask for, and only those.
func (w *judged) gatherIn(width int) {
	if packed, ok := w.view.Packed(); ok {
		tensor.GatherRows(w.block.Bytes(), packed, w.source, width)
		return
	}
	for i, row := range w.source {
		tensor.CopyRows(w.block.Bytes()[i*width:(i+1)*width], w.view.Row(int(row)))
	}
}

// fillArrays copies the values of the prims into the arena.
func (w *judged) fillArrays() {
	spans := column.Spans(w.block, len(w.arrays))
	for i, values := range w.arrays {
		size := values.Size()
		spans[i] = column.Span{Offset: uint64(w.arena.Used), Length: uint64(size)}
		tensor.CopyRows(w.arena.Block.Bytes()[w.arena.Used:], values)
		w.arena.Used += size
	}
	memory.Copied(w.arena.Used)
}

// adopt makes the tensor's memory the record's if it is all of the column's newest value; else the tensor is copied after all. Where
// there is no memory for the copy, the record keeps the tensor's memory until it is sealed.
func (w *judged) adopt(ordinal uint64) {
	if w.block.Valid() {
		return
	}
	if w.column.Newest(w.rows, ordinal) || w.makeRoom() != nil {
		w.block = w.owned.Retain()
		return
	}
	w.fill()
}
