package stage

import (
	"slices"
	"unsafe"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/tensor"
)

// judgeArrays checks the tensors of an array column: one per source row, or a single one that is cut into rows of equal
// length. Their shape beyond the number of elements does not matter; lanes are taken as they are sent.
func (w *judged) judgeArrays(p *Payload, count int) error {
	dtype := p.Views[0].DType
	for i, v := range p.Views {
		if err := checkView(&p.Views[i]); err != nil {
			return err
		}
		if v.DType != dtype {
			return errorf(InvalidArgument, "tensor %d is %s, but tensor 0 is %s; all rows have one element type", i, v.DType, dtype)
		}
	}
	if err := dtype.Check(); err != nil {
		return own(err)
	}
	if err := p.Semantic.Check(dtype, true); err != nil {
		return own(err)
	}
	w.schema = column.Schema{DType: dtype, Array: true, Semantic: p.Semantic}
	w.source = nil
	if p.IndexMap != nil {
		w.source = slices.Clone(p.IndexMap[:count]) // a copy: the client may change its own during the call
	}
	if len(p.Views) == 1 {
		return w.cutRows(p, count)
	}
	return w.takeRows(p, count)
}

// takeRows takes one tensor per source row.
func (w *judged) takeRows(p *Payload, count int) error {
	rows := len(p.Views)
	if w.source == nil && rows != count {
		return errorf(InvalidArgument, "there are %d tensors, one per prim, but %d prims are to be written", rows, count)
	}
	for i, row := range w.source {
		if int(row) >= rows {
			return errorf(InvalidArgument, "index_map[%d] is %d, which references a source row outside the transported row count %d",
				i, row, rows)
		}
	}
	w.choose(count, func(row int) tensor.View { return p.Views[row] })
	return nil
}

// cutRows cuts one tensor into source rows of equal length.
func (w *judged) cutRows(p *Payload, count int) error {
	rows, origin := count, "the number of prims to be written"
	if w.source != nil {
		rows, origin = 0, "the highest index_map entry"
		for _, row := range w.source {
			rows = max(rows, int(row)+1)
		}
	}
	whole := p.Views[0]
	elements := whole.Size() / whole.DType.Size()
	if elements%rows != 0 {
		return errorf(InvalidArgument, "a packed payload of %d elements does not divide evenly across %d source row(s) (from %s); "+
			"pass one tensor per row", elements, rows, origin)
	}
	bytes, err := w.pack(whole)
	if err != nil {
		return own(err)
	}
	length := len(bytes) / rows
	w.choose(count, func(row int) tensor.View {
		cut := tensor.View{Device: whole.Device, DType: whole.DType, Shape: []int64{int64(elements / rows)}}
		if length > 0 {
			cut.Data = unsafe.Pointer(&bytes[row*length])
		}
		return cut
	})
	return nil
}

// pack returns the bytes of a tensor in row-major order: its own memory where it is packed, else a copy off the heap.
func (w *judged) pack(v tensor.View) (bytes []byte, err error) {
	if bytes, ok := v.Packed(); ok {
		return bytes, nil
	}
	if w.scratch, err = memory.Alloc(v.Size(), memory.Maps); err != nil {
		return nil, err
	}
	tensor.CopyRows(w.scratch.Bytes(), v)
	return w.scratch.Bytes()[:v.Size()], nil
}

// choose collects the values of each written prim.
func (w *judged) choose(count int, values func(row int) tensor.View) {
	for i := range count {
		if w.mask != nil && !w.mask.Has(i) {
			continue
		}
		row := i
		if w.source != nil {
			row = int(w.source[i])
		}
		w.arrays = append(w.arrays, values(row))
	}
}
