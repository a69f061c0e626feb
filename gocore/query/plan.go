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
	plan, err := b.PlanOf(sealed)
	if err != nil {
		return nil, err
	}
	b.plan.release()
	b.plan = plan
	return plan, nil
}

// PlanOf returns how a snapshot serves the binding. The caller owns the plan.
func (b *Binding) PlanOf(s column.Snapshot) (*Plan, error) {
	plan := &Plan{shape: s.Shape()}
	if len(b.missing) == 0 && s.Dense(b.rows.End()) {
		plan.Count, plan.Rows = b.list.Len(), b.rows.Retain()
		return plan, nil
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
	return nil
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
