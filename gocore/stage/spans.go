package stage

import (
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
)

// newArrays returns room for the spans and the values of rows.
func newArrays(rows, total int, zeroed bool) (block memory.Block, arena column.Arena, err error) {
	block, err = memory.Alloc(rows*column.SpanSize, memory.Columns)
	if err != nil {
		return block, arena, err
	}
	if zeroed {
		arena.Block, err = memory.AllocZeroed(total, memory.Columns)
	} else {
		arena.Block, err = memory.Alloc(total, memory.Columns)
	}
	if err != nil {
		block.Release()
		return memory.Block{}, arena, err
	}
	return block, arena, nil
}
