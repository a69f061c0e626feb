package stage

import (
	"fmt"
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// judge makes w the judged write of what was asked. It refuses what can't be written, whatever the stage holds for the prims, and
// changes nothing of the stage.
func (s *Stage) judge(w *judged, prims *pathdict.List, asked *Write, ordinal uint64, mode Mode) (err error) {
	w.prims = prims
	if w.name, w.attribute, err = s.target("written", asked.Attribute, ordinal); err != nil {
		return err
	}
	count, err := asked.Payload.count(prims.Len())
	if err == nil && prims.Len() > 0 {
		err = s.judgeValues(w, &asked.Payload, count)
	}
	if err != nil {
		return s.about(asked.Attribute, err)
	}
	if prims.Len() > 0 {
		if err := s.checkFixed(w.attribute, w.name, w.schema); err != nil {
			return err
		}
		s.narrow(w, count, mode)
	}
	if err := s.checkMode(w.prims, mode); err != nil {
		return err
	}
	if w.prims.Len() == 0 {
		w.release()
		w.scratch = memory.Block{}
	}
	return nil
}

// narrow leaves the prims that are written: those that count and mask select, and of those an Update writes, the ones that exist.
func (s *Stage) narrow(w *judged, count int, mode Mode) {
	w.prims, w.mask = s.dict.Sublist(w.prims, count, w.mask), nil
	if mode == Update {
		paths := w.prims.Indices()
		w.keep(s.dict, func(position int) bool { return s.exists(paths[position]) })
	}
}

// judgeValues checks the tensors of a payload. There is at least one prim to write.
func (s *Stage) judgeValues(w *judged, p *Payload, count int) (err error) {
	w.mask, w.owned = s.take(p.Mask, bitset.Words(count)), p.Owned
	if p.Array {
		err = w.judgeArrays(p, count)
	} else {
		err = w.judgeFixed(p, count)
	}
	w.schema.Type = s.typeOf(p.Type)
	return err
}

// judgeFixed checks the tensor of a fixed column: that it can be read, and that it has a row for every prim.
func (w *judged) judgeFixed(p *Payload, count int) error {
	w.view = p.Views[0]
	if err := checkView(&w.view); err != nil {
		return err
	}
	rows, dtype, err := w.view.Fold()
	if err != nil {
		return own(err)
	}
	if err := p.Semantic.Check(dtype, false); err != nil {
		return own(err)
	}
	w.schema = column.Schema{DType: dtype, Semantic: p.Semantic}
	if p.IndexMap != nil {
		w.source = slices.Clone(p.IndexMap[:count]) // a copy: the client may change its own during the call
		for i, row := range w.source {
			if int(row) >= rows {
				return errorf(InvalidArgument, "index_map[%d] is %d, which references a source row outside the transported row count %d",
					i, row, rows)
			}
		}
		return nil
	}
	if rows != count {
		return errorf(InvalidArgument, "the tensor (shape %v, %s) has %d rows, but %d prims are to be written%s",
			tensor.Axes(w.view.Shape), w.view.DType, rows, count, flatHint(w.view, rows, count))
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
