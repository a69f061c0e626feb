package stage

import (
	"fmt"
	"math/bits"
	"slices"

	"ovstage/gocore/column"
	"ovstage/gocore/memory"
	"ovstage/gocore/pathdict"
	"ovstage/gocore/tensor"
)

// Payload is what a write brings.
type Payload struct {
	Views    []tensor.View // one for a fixed column
	Array    bool          // declares one variable-length array per prim
	Count    uint32        // leading prims that are written; 0 = all
	IndexMap []uint32      // source row of each written prim
	Mask     []uint64      // which of the leading prims are written
	Stream   uintptr       // CUDA stream to wait for; ignored for host data
	Event    uintptr       // CUDA event to wait for
	Semantic tensor.Semantic
	Type     pathdict.Token // the name of the type of the values; 0: not said

	// Owned is the memory of a fixed column's tensor when its owner hands it over: a foreign block whose first byte is that
	// of the tensor. It becomes the column's storage if the tensor is packed, aligned, covers the column and is its newest
	// value; the write then takes a reference of its own. Otherwise it is copied like any other.
	Owned memory.Block
}

// count is the number of leading prims that the payload is about.
func (p *Payload) count(name string, prims int) (int, *Error) {
	switch count := int(p.Count); {
	case p.IndexMap != nil && p.Mask != nil:
		return 0, errorf(InvalidArgument, "attribute %q: index_map and mask are mutually exclusive; pass one of them", name)
	case count == 0 && (p.IndexMap != nil || p.Mask != nil):
		return 0, errorf(InvalidArgument, "attribute %q: count must be non-zero when index_map or mask is supplied", name)
	case p.IndexMap != nil && len(p.IndexMap) < count:
		return 0, errorf(InvalidArgument, "attribute %q: index_map has %d entries, but count is %d; pass one entry per written prim",
			name, len(p.IndexMap), count)
	case p.Mask != nil && 64*len(p.Mask) < count:
		return 0, errorf(InvalidArgument, "attribute %q: mask has %d words of 64 bits, but count is %d; pass a bit per prim",
			name, len(p.Mask), count)
	case count > prims:
		return 0, errorf(InvalidArgument, "attribute %q: count is %d, but the query lists %d prims; pass at most that many, or leave count out for all",
			name, count, prims)
	case count == 0:
		return prims, nil
	default:
		return count, nil
	}
}

// take copies the first n of what a client has lent for the length of the call: it may change meanwhile, so that it is read once,
// before it is judged. The copy is good until the next one, or until the mutex is free.
func (s *Stage) take(lent []uint64, n int) []uint64 {
	if lent == nil {
		return nil
	}
	if cap(s.taken) > mostTaken && n <= mostTaken {
		s.taken = nil
	}
	s.taken = append(s.taken[:0], lent[:n]...)
	return s.taken
}

// mostTaken is how many words are kept for the next call, rather than for the largest that ever came.
const mostTaken = 1 << 13

// judgePayload checks the tensor of a fixed column: that it can be read, and that it has a row for every prim.
func (w *pending) judgePayload(name string, p *Payload, count int) *Error {
	w.view = p.Views[0]
	if err := checkView(w.view, name); err != nil {
		return err
	}
	rows, dtype, err := w.view.Fold()
	if err != nil {
		return wrap(err, "attribute %q", name)
	}
	if err := p.Semantic.Check(dtype, false); err != nil {
		return wrap(err, "attribute %q", name)
	}
	w.schema = column.Schema{DType: dtype, Semantic: p.Semantic}
	if p.IndexMap != nil {
		w.source = slices.Clone(p.IndexMap[:count]) // read once, as what is taken is
		for i, row := range w.source {
			if int(row) >= rows {
				return errorf(InvalidArgument, "attribute %q: index_map[%d] is %d, which references a source row outside the transported row count %d",
					name, i, row, rows)
			}
		}
		return nil
	}
	if rows != count {
		return errorf(InvalidArgument, "attribute %q: the tensor (shape %v, %s) has %d rows, but %d prims are to be written%s",
			name, tensor.Axes(w.view.Shape), w.view.DType, rows, count, flatHint(w.view, rows, count))
	}
	if w.mask != nil {
		w.source = selected(w.mask, count)
	}
	return nil
}

// checkView refuses a tensor that this build can't read.
func checkView(v tensor.View, name string) *Error {
	if v.Device.Type != tensor.CPU {
		return errorf(NotSupported, "attribute %q: the tensor is on %s, which this build can't read; copy it to the host first", name, v.Device)
	}
	if err := v.CheckExtents(); err != nil {
		return wrap(err, "attribute %q", name)
	}
	return nil
}

// selected lists the positions below n whose bit is set.
func selected(mask []uint64, n int) []uint32 {
	ones := 0
	for _, word := range mask {
		ones += bits.OnesCount64(word)
	}
	list := make([]uint32, 0, min(ones, n))
	for at, word := range mask[:(n+63)/64] {
		if beyond := 64*(at+1) - n; beyond > 0 {
			word &= ^uint64(0) >> beyond
		}
		for ; word != 0; word &= word - 1 {
			list = append(list, uint32(64*at+bits.TrailingZeros64(word)))
		}
	}
	return list
}

// flatHint explains the commonest mistake: components counted as rows.
func flatHint(v tensor.View, rows, prims int) string {
	if rows == 1 && prims > 1 {
		return fmt.Sprintf("; for one value for all prims pass an index_map of %d zeros (np.zeros(%d, np.uint32)), or a row per prim (np.full(%d, value, dtype))",
			prims, prims, prims)
	}
	if len(v.Shape) != 1 || prims == 0 || rows <= prims || rows%prims != 0 {
		return ""
	}
	return fmt.Sprintf("; a flat buffer is not cut into tuples: pass shape (%d, %d), or a dtype with %d lanes and shape (%d,)",
		prims, rows/prims, int(v.DType.Lanes)*rows/prims, prims)
}
