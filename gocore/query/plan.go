package query

import (
	"ovstage/gocore/column"
	"ovstage/gocore/memory"
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
	if err := b.choose(plan, func(row uint32) bool {
		if !s.Live(int(row)) && !s.Gone(int(row)) {
			plan.Pending = append(plan.Pending, row)
		}
		return s.Live(int(row))
	}); err != nil {
		return nil, err
	}
	return plan, nil
}

// Select is a plan of those listed prims whose rows are wanted. The caller owns it.
func (b *Binding) Select(wanted func(row uint32) bool) (*Plan, error) {
	plan := &Plan{}
	return plan, b.choose(plan, wanted)
}

// choose enters the prims whose rows are wanted into a plan.
func (b *Binding) choose(plan *Plan, wanted func(row uint32) bool) error {
	positions, err := memory.Alloc(4*b.list.Len(), memory.Indices)
	if err != nil {
		return err
	}
	rows, err := memory.Alloc(4*b.list.Len(), memory.Indices)
	if err != nil {
		positions.Release()
		return err
	}
	at, of, n := positions.Uint32s(b.list.Len()), rows.Uint32s(b.list.Len()), 0
	b.Each(func(position int, row uint32) {
		if wanted(row) {
			at[n], of[n] = uint32(position), row
			n++
		}
	})
	plan.Count, plan.Rows = n, column.Indexed(rows, n)
	if n == 0 || int(at[n-1]-at[0]) == n-1 {
		if n > 0 {
			plan.Offset = int(at[0])
		}
		positions.Release()
	} else {
		plan.Positions = positions
	}
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
