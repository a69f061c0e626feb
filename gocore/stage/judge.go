package stage

import (
	"fmt"
	"slices"

	"ovstage/gocore/bitset"
	"ovstage/gocore/column"
	"ovstage/gocore/memory"
	"ovstage/gocore/query"
	"ovstage/gocore/tensor"
)

// judge refuses what can't be written, whatever the stage holds for the prims. It changes nothing.
func (s *Stage) judge(q query.Query, asked *Write, ordinal uint64, mode Mode) (pending, *Error) {
	w := pending{name: s.stored(asked.Attribute), prims: q.Prims}
	if err := s.checkTarget("written", w.name, ordinal); err != nil {
		return w, err
	}
	p := &asked.Payload
	name := s.quoted(asked.Attribute)
	switch {
	case len(p.Views) == 0:
		return w, errorf(InvalidArgument, "attribute %q: tensor_count is 0; pass at least one tensor", name)
	case len(p.Views) != 1 && !p.Array:
		return w, errorf(InvalidArgument, "attribute %q: a fixed column takes exactly one tensor, got %d; set is_array for one array per prim",
			name, len(p.Views))
	case p.Event != 0:
		return w, errorf(NotSupported, "attribute %q: cuda_sync.wait_event is %#x, but CUDA is not loaded; pass 0 for host data", name, p.Event)
	}
	count, err := p.count(name, q.Prims.Len())
	if err != nil {
		return w, err
	}
	if q.Prims.Len() > 0 {
		w.mask = s.take(p.Mask, bitset.Words(count))
		judgePayload := w.judgePayload
		if p.Array {
			judgePayload = w.judgeArrays
		}
		if err := judgePayload(name, p, count); err != nil {
			return w, err
		}
		w.schema.Type = s.typeOf(p.Type)
		if err := s.checkFixed(w.name, w.schema); err != nil {
			return w, err
		}
		w.prims = s.dict.Sublist(q.Prims, count, w.mask)
		if mode == Update {
			paths := w.prims.Indices()
			w.keep(s.dict, func(position int) bool { return s.exists(paths[position]) })
		}
		w.owned, w.mask = p.Owned, nil
	}
	if err := s.checkMode(w.prims, mode); err != nil {
		return w, err
	}
	if w.prims.Len() == 0 {
		w.release()
		w.scratch = memory.Block{}
	}
	return w, nil
}

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
