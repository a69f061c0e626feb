package scene

import (
	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/tensor"
)

// input is one column as a pass sees it.
type input struct {
	column *column.Column
	bytes  []byte
	alive  bitset.Set   // the rows that hold a value
	copy   memory.Block // of all values, where some are not sealed or not the newest; else bytes are those of the column
	newest bool         // no older state than the newest sealed one

	// The rows that may hold another value than in the pass that is built on; without one, all.
	all      bool
	sealed   bitset.Set
	unsealed bitset.Set
}

// open looks at one column.
func open(c *column.Column, ordinal uint64) (input, error) {
	one := input{column: c, all: true, newest: true}
	unsealed, first := c.UnsealedIn(0, ordinal)
	if first == 0 {
		state := c.At(ordinal)
		if one.newest = state == c.Sealed(); !one.newest {
			made, err := c.Make(state)
			if err != nil {
				return one, err
			}
			state, one.copy = made, made.Block().Retain()
		}
		one.alive = state.AllLive()
		if state.Extent() > 0 {
			one.bytes = state.Block().Bytes()
		}
		return one, nil
	}
	size := c.Rows() * c.Width()
	block, err := memory.Alloc(size, memory.Maps)
	if err != nil {
		return one, err
	}
	if err := c.Compose(block.Bytes()[:size], column.Run(0, c.Rows()), ordinal); err != nil {
		block.Release()
		return one, err
	}
	one.bytes, one.copy, one.alive, one.unsealed = block.Bytes(), block, c.AllAlive(ordinal), unsealed.Set()
	return one, nil
}

// changed reports whether a row may hold another value.
func (in *input) changed(row int32) bool {
	return in.all || in.sealed.Has(int(row)) || in.unsealed.Has(int(row))
}

// anyPrim is a prim that has a value.
func (in *input) anyPrim() (path uint32) {
	in.alive.Each(func(row int) { path = in.column.Path(row) })
	return path
}

func closeAll(inputs []input) {
	for i := range inputs {
		inputs[i].copy.Release()
	}
}

// expectation is a schema that a pass can read.
type expectation struct {
	by   func(column.Schema) bool
	text string
}

var (
	matrixType = tensor.DType{Code: tensor.Float, Bits: 64, Lanes: 16}

	transforms = expectation{func(s column.Schema) bool { return s.DType == matrixType && !s.Array }, "float64x16"}

	// flags are bool; 8-bit integers were written by clients before that.
	flags = expectation{func(s column.Schema) bool {
		return s.DType.Bits == 8 && s.DType.Lanes == 1 && s.DType.Code != tensor.Float && !s.Array
	}, "bool8"}
)
