package column

import (
	"errors"
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/memory"
)

// undo is what a state held in the rows that the seal after it changed: from it and the state that followed, the state is made
// again. It costs what the seal changed.
type undo struct {
	rows  Rows         // none that the state did not reach; as the write listed them, until one is looked for
	block memory.Block // their bytes, packed; of arrays their spans, whose values stay where they are
	width int          // bytes of a row

	live, gone bitset.Set // by index: which of the rows held a value, and which were deleted. Without either all held one.
}

func (u *undo) release() {
	u.rows.Release()
	u.block.Release()
}

// find returns the index of a row. Without memory to sort the rows they are searched one by one.
func (u *undo) find(row int) (i int, found bool) {
	if u.sort() != nil {
		i = slices.Index(u.rows.List(), uint32(row))
		return i, i >= 0
	}
	return u.rows.find(row)
}

// sort brings the rows into ascending order, each once: of a row that was listed twice both say the same. A seal does not pay for
// it, the first question does.
func (u *undo) sort() error {
	if u.rows.ascending() {
		return nil
	}
	keys := make([]uint64, u.rows.Len())
	u.rows.Each(func(i, row int) { keys[i] = uint64(row)<<32 | uint64(i) })
	slices.Sort(keys)
	keys = slices.CompactFunc(keys, func(a, b uint64) bool { return a>>32 == b>>32 })
	sorted, err := newUndo(len(keys), u.width, func(i int) (int, *undo, int) { return int(keys[i] >> 32), u, int(uint32(keys[i])) })
	if err == nil {
		u.release()
		*u = sorted
	}
	return err
}

// newUndo makes an undo of n rows. from tells which row the i-th is, and the undo and the index there that tell of it.
func newUndo(n, width int, from func(i int) (row int, of *undo, at int)) (made undo, err error) {
	index, err := memory.Alloc(4*n, memory.Indices)
	if err != nil {
		return undo{}, err
	}
	if made.block, err = memory.Alloc(n*width, memory.Columns); err != nil {
		index.Release()
		return undo{}, err
	}
	made.width, made.live, made.gone = width, bitset.New(n), bitset.New(n)
	list, held := index.Uint32s(n), true
	for i := range n {
		row, of, at := from(i)
		list[i] = uint32(row)
		copy(made.block.Bytes()[i*width:(i+1)*width], of.block.Bytes()[at*width:])
		made.live.Put(i, of.live == nil || of.live.Has(at))
		made.gone.Put(i, of.gone.Has(at))
		held = held && of.live == nil
	}
	if held {
		made.live, made.gone = nil, nil
	}
	made.rows = Indexed(index, n)
	return made, nil
}

// joined is the undo of two seals, of which later is that of the second: of a row that both changed the first knows what it held
// before. extent is how far the state reached before both. The caller owns it.
func (u *undo) joined(later *undo, extent int) (both undo, err error) {
	if err = errors.Join(u.sort(), later.sort()); err != nil {
		return undo{}, err
	}
	type source struct {
		row int
		of  *undo
		at  int
	}
	n, m := u.rows.Len(), later.rows.Len()
	from := make([]source, 0, n+m)
	for i, k := 0, 0; i < n || k < m; {
		switch {
		case k == m || i < n && u.rows.at(i) < later.rows.at(k):
			from = append(from, source{u.rows.at(i), u, i})
			i++
		case i < n && u.rows.at(i) == later.rows.at(k): // the first one's is next
			k++
		default:
			if later.rows.at(k) < extent {
				from = append(from, source{later.rows.at(k), later, k})
			}
			k++
		}
	}
	return newUndo(len(from), u.width, func(i int) (int, *undo, int) { return from[i].row, from[i].of, from[i].at })
}
