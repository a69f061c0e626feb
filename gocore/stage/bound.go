package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/prims"
	"ovstage.dev/ovstage/gocore/query"
)

// bound is a column and what path lists mean in it.
type bound struct {
	*column.Column
	bindings query.Bindings
	spent    bool // listed in the stage's spent
}

// rowsOf returns the rows of those prims that have one.
func (c *bound) rowsOf(prims *pathdict.List) (column.Rows, error) {
	b, err := c.bindings.Of(c.Column, prims)
	if err != nil {
		return column.Rows{}, err
	}
	return b.Rows(), nil
}

// carried reports whether any of the prims holds a value in the column, in its newest state.
func (c *bound) carried(prims *pathdict.List) (bool, error) {
	rows, err := c.rowsOf(prims)
	if err != nil || rows.Len() == 0 || !c.Deletes() {
		return rows.Len() > 0, err
	}
	return slices.Contains(c.Alive(rows, column.Latest), true), nil
}

// holding returns the rows of those prims that hold a value at an ordinal. The caller owns the list.
func (c *bound) holding(prims *pathdict.List, ordinal uint64) (column.Rows, error) {
	rows, err := c.rowsOf(prims)
	if err != nil || rows.Len() == 0 {
		return column.Rows{}, err
	}
	return rows.Where(c.Alive(rows, ordinal))
}

// within reports whether every prim that has a value in the column is in the list.
func (c *bound) within(list *pathdict.List) bool {
	var listed prims.Set
	listed.Change(list.Indices(), +1)
	alive := c.AllAlive(column.Latest)
	for row := range c.Column.Rows() {
		if alive.Has(row) && !listed.Has(c.Path(row)) {
			return false
		}
	}
	return true
}

// having returns the rows of those prims that have one. The caller owns the list.
func (c *bound) having(prims []uint32) (column.Rows, error) {
	if err := c.PrepareRows(); err != nil {
		return column.Rows{}, err
	}
	block, err := memory.Alloc(4*len(prims), memory.Indices)
	if err != nil {
		return column.Rows{}, err
	}
	rows, n := block.Uint32s(len(prims)), 0
	for _, path := range prims {
		if row := c.Row(path); row >= 0 {
			rows[n] = uint32(row)
			n++
		}
	}
	return column.Indexed(block, n), nil
}

// newest returns the newest values of every row of a fixed column, sealed or not.
func (c *bound) newest() (memory.Block, error) {
	size := c.Rows() * c.Width()
	block, err := memory.Alloc(size, memory.Columns)
	if err != nil {
		return block, err
	}
	if err := c.Compose(block.Bytes()[:size], column.Run(0, c.Rows()), column.Latest); err != nil {
		block.Release()
		return memory.Block{}, err
	}
	return block, nil
}

func someRow(c *bound, of bitset.Set) bool {
	for row := range c.Rows() {
		if of.Has(row) {
			return true
		}
	}
	return false
}
