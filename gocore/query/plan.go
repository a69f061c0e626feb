package query

import (
	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/invariants"
	"ovstage.dev/ovstage/gocore/memory"
)

// Plan says how one column serves a list from its sealed state: which listed prims it covers and which rows they are.
// It depends on the set of sealed rows alone, so that a client sees the same groups in every read until rows come or go.
type Plan struct {
	shape uint64 // of the snapshot

	Offset, Count int          // covered prims are list positions Offset..Offset+Count,
	Positions     memory.Block // or, when valid, these Count positions
	Rows          column.Rows  // their rows, in the same order

	// Pending lists rows of listed prims that have been written but never sealed.
	Pending []uint32
}

// Plan returns how the column's newest sealed state serves the binding. The plan is the binding's.
func (b *Binding) Plan(col *column.Column) (*Plan, error) {
	sealed := col.Sealed()
	if b.plan != nil && b.plan.shape == sealed.Shape() {
		return b.plan, nil
	}
	plan, err := b.again(sealed)
	if plan == nil && err == nil {
		plan, err = b.PlanOf(sealed)
	}
	if err != nil {
		return nil, err
	}
	b.plan.release()
	b.plan = plan
	return plan, nil
}

// again is PlanOf for a list in any order that was planned before and of whose rows few hold no value. There is no plan where it is
// something else.
func (b *Binding) again(sealed column.Snapshot) (*Plan, error) {
	if _, run := b.rows.Run(); run || b.plan == nil || len(b.missing) > 0 || sealed.Dense(b.rows.End()) {
		return nil, nil
	}
	var holes bitset.Sparse
	holes.Reset(b.rows.End())
	for _, row := range sealed.Holes(0, b.rows.End()) {
		holes.Add(int(row))
	}
	if !b.few(&holes) {
		return nil, nil
	}
	plan := &Plan{shape: sealed.Shape()}
	return plan, plan.leave(sealed, b.rows.List(), b.find(&holes))
}

// PlanOf returns how a snapshot serves the binding. The caller owns the plan.
func (b *Binding) PlanOf(s column.Snapshot) (*Plan, error) {
	plan := &Plan{shape: s.Shape()}
	if len(b.missing) == 0 && s.Dense(b.rows.End()) {
		plan.Count, plan.Rows = b.list.Len(), b.rows.Retain()
		return plan, nil
	}
	if start, run := b.rows.Run(); run && len(b.missing) == 0 {
		return plan, plan.cut(s, start, b.list.Len())
	}
	return plan, plan.fill(b.list.Len(), func(add func(position int, row uint32)) {
		b.Each(func(position int, row uint32) {
			switch {
			case s.Live(int(row)):
				add(position, row)
			case !s.Gone(int(row)):
				plan.Pending = append(plan.Pending, row)
			}
		})
	})
}

// Select is a plan of those listed prims whose rows are in a set and wanted. The caller owns it. It costs what EachIn does.
func (b *Binding) Select(among *bitset.Sparse, wanted func(row uint32) bool) (*Plan, error) {
	plan, met := &Plan{}, b.meet(among)
	if met.most == 0 {
		return plan, nil
	}
	return plan, plan.fill(met.most, func(add func(position int, row uint32)) {
		met.each(func(position int, row uint32) {
			if wanted(row) {
				add(position, row)
			}
		})
	})
}

// cut enters those of n prims whose rows follow each other from start on that hold a value. It costs what they hold by the word, and
// what has to be listed: nothing where the others are the first or the last ones.
func (p *Plan) cut(s column.Snapshot, start, n int) error {
	holes := s.Holes(start, start+n)
	for _, row := range holes {
		if !s.Gone(int(row)) {
			p.Pending = append(p.Pending, row)
		}
	}
	p.Count = n - len(holes)
	first, end := 0, n
	for first < len(holes) && int(holes[first]) == start+first {
		first++
	}
	for k := len(holes); k > first && int(holes[k-1]) == start+end-1; k-- {
		end--
	}
	if end-first == p.Count {
		p.Offset, p.Rows = first, column.Run(start+first, p.Count)
		return nil
	}
	rows, err := memory.Alloc(4*p.Count, memory.Indices)
	if err != nil {
		return err
	}
	p.Positions = rows
	if start > 0 {
		if p.Positions, err = memory.Alloc(4*p.Count, memory.Indices); err != nil {
			rows.Release()
			return err
		}
		list(p.Positions.Uint32s(p.Count), holes, start, 0)
	} else {
		rows.Retain() // they are their rows
	}
	list(rows.Uint32s(p.Count), holes, start, start)
	p.Rows = column.Rising(rows, p.Count)
	p.mustLie(n)
	return nil
}

// leave enters the prims of a list but for those at some of its indices, whose rows hold no value. What lies between is copied.
func (p *Plan) leave(s column.Snapshot, rows, without []uint32) error {
	for _, i := range without {
		if !s.Gone(int(rows[i])) {
			p.Pending = append(p.Pending, rows[i])
		}
	}
	p.Count = len(rows) - len(without)
	positions, err := memory.Alloc(4*p.Count, memory.Indices)
	if err != nil {
		return err
	}
	kept, err := memory.Alloc(4*p.Count, memory.Indices)
	if err != nil {
		positions.Release()
		return err
	}
	to, from := kept.Uint32s(p.Count), 0
	for _, i := range without {
		to = to[copy(to, rows[from:i]):]
		from = int(i) + 1
	}
	copy(to, rows[from:])
	list(positions.Uint32s(p.Count), without, 0, 0)
	p.take(positions, kept, p.Count, len(rows))
	return nil
}

// list fills a list with what follows each other from first on, without the holes, which are counted from start on.
func list(to, holes []uint32, start, first int) {
	next, at := uint32(first), 0
	for _, hole := range holes {
		until := hole - uint32(start) + uint32(first)
		for ; next < until; next++ {
			to[at] = next
			at++
		}
		next = until + 1
	}
	for ; at < len(to); at++ {
		to[at] = next
		next++
	}
}

// fill enters the prims that walk adds, at most so many and in list order.
func (p *Plan) fill(most int, walk func(add func(position int, row uint32))) error {
	positions, err := memory.Alloc(4*most, memory.Indices)
	if err != nil {
		return err
	}
	rows, err := memory.Alloc(4*most, memory.Indices)
	if err != nil {
		positions.Release()
		return err
	}
	at, of, n := positions.Uint32s(most), rows.Uint32s(most), 0
	walk(func(position int, row uint32) {
		at[n], of[n] = uint32(position), row
		n++
	})
	p.take(positions, rows, n, most)
	return nil
}

// take enters lists of n positions and rows, which are its own from now on. Positions that follow each other are not kept.
func (p *Plan) take(positions, rows memory.Block, n, most int) {
	at := positions.Uint32s(n)
	p.Count, p.Rows = n, column.Indexed(rows, n)
	if n == 0 || int(at[n-1]-at[0]) == n-1 {
		if n > 0 {
			p.Offset = int(at[0])
		}
		positions.Release()
	} else {
		p.Positions = positions
	}
	p.mustLie(most)
}

// Release gives back a plan that the caller owns.
func (p *Plan) Release() { p.release() }

func (p *Plan) release() {
	if p == nil {
		return
	}
	p.Rows.Release()
	if p.Positions.Valid() {
		p.Positions.Release()
	}
}

// mustLie states that a plan has a row for each prim that it covers, and covers some of those listed, in order.
func (p *Plan) mustLie(most int) {
	if !invariants.Enabled {
		return
	}
	invariants.Check(p.Rows.Len() == p.Count && p.Count <= most, "%d rows for %d prims, at most %d", p.Rows.Len(), p.Count, most)
	if p.Positions.Valid() {
		at := p.Positions.Uint32s(p.Count)
		for i := 1; i < len(at); i++ {
			invariants.Check(at[i-1] < at[i], "position %d comes before position %d", at[i-1], at[i])
		}
	}
}
