package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/tensor"
)

// Column holds the rows of one attribute with one schema.
type Column struct {
	schema Schema
	width  int // bytes of a row
	table
	sealed     state
	history    []*state // earlier sealed states that are still served, oldest first
	blocks     int      // how many of them are kept by their blocks
	made       made     // one of them that was asked for as a whole
	keep       uint64   // ordinals at and below the floor whose states are kept; 0 and 1 = the newest only
	holds      []*state // sealed states that are held
	records    []record // unsealed writes and deletes, by ordinal, then submission
	rewritten  recent   // the rows of the newest records
	tombstones int      // deletes among records

	tried        uint64 // the frontier, and how many states were kept, when rows could not be given up
	triedHistory int

	changes changes
	asked   asked
	spares  []spareBlock // earlier sealed blocks, newest first, kept for reuse
}

// asked are the sets with which a column answers. Each is used again by the next question of its kind, so that what an answer
// costs is what it holds, however many rows the column has.
type asked struct{ changed, after, unsealed, undone bitset.Sparse }

// New returns an empty column.
func New(schema Schema) *Column {
	c := &Column{schema: schema, width: schema.DType.Size()}
	if schema.Array {
		c.width = SpanSize
	}
	return c
}

// Schema returns the schema.
func (c *Column) Schema() Schema { return c.schema }

// Stamp records a role on a column that was created without one.
func (c *Column) Stamp(role tensor.Semantic) { c.schema.Semantic = role }

// StampType records the name of its type on a column that was created without one.
func (c *Column) StampType(name Type) { c.schema.Type = name }

// Width is the number of bytes of a row; of its span in an array column.
func (c *Column) Width() int { return c.width }

// Rows is the number of rows that exist, sealed or not.
func (c *Column) Rows() int { return len(c.paths) }

// PrepareRows makes the table in which Row looks, for a caller that will look up many: without it Row searches. The error is
// an *memory.OutOfMemory.
func (c *Column) PrepareRows() error { return c.table.catchUp() }

// Row returns the row of a path (a dense path index), or -1.
func (c *Column) Row(path uint32) int { return c.row(path) }

// Run returns the first of consecutive rows that hold exactly these paths in order, or -1.
func (c *Column) Run(paths []uint32) int { return c.run(paths) }

// Path returns the path (a dense path index) of a row.
func (c *Column) Path(row int) uint32 { return c.paths[row] }

// Add gives rows to paths that have none, consecutive and in order; the caller does not change paths afterwards. The rows hold
// no state until a write names them. Rows that deleted prims gave up are used again when enough of them lie together.
func (c *Column) Add(paths []uint32) Rows { return Run(c.table.add(paths), len(paths)) }

// Added is the number of rows that were ever given to prims: it rises with each.
func (c *Column) Added() uint64 { return c.added }

// Epoch rises when rows are given up: what was looked up before is no longer true.
func (c *Column) Epoch() uint64 { return c.epoch }

// Sealed returns the newest sealed state.
func (c *Column) Sealed() Snapshot { return Snapshot{&c.sealed} }

// Unsealed reports whether writes wait for the floor.
func (c *Column) Unsealed() bool { return len(c.records) > 0 }

// LastOrdinal is the ordinal of the newest write or delete, sealed or not.
func (c *Column) LastOrdinal() uint64 {
	if n := len(c.records); n > 0 {
		return max(c.sealed.ordinal, c.records[n-1].ordinal)
	}
	return c.sealed.ordinal
}

// Bytes is the memory that the column holds, spare blocks included.
func (c *Column) Bytes() int {
	total := c.sealed.block.Capacity() + c.sealed.arena.Block.Capacity() // no block has none
	for _, r := range c.records {
		total += r.block.Capacity() + r.arena.Block.Capacity()
	}
	for _, b := range c.spares {
		total += b.block.Capacity()
	}
	total += c.made.block.Capacity()
	if len(c.history) == 0 && len(c.holds) == 0 {
		return total
	}
	known := map[memory.Block]struct{}{c.sealed.block: {}, c.sealed.arena.Block: {}} // states may share them
	for _, b := range c.spares {
		known[b.block] = struct{}{}
	}
	for _, s := range slices.Concat(c.history, c.holds) {
		total += s.undo.block.Capacity()
		for _, b := range []memory.Block{s.block, s.arena.Block} {
			if _, again := known[b]; !again {
				known[b] = struct{}{}
				total += b.Capacity()
			}
		}
	}
	return total
}

// Close ends the column and releases its references. A reader keeps the blocks that it holds, and with them their bytes.
func (c *Column) Close() {
	c.table.close()
	c.sealed.release()
	for _, past := range c.history {
		past.release()
	}
	for _, held := range c.holds {
		held.release()
	}
	c.made.release()
	for _, r := range c.records {
		r.rows.Release()
		r.block.Release()
		r.arena.Block.Release()
	}
	for _, b := range c.spares {
		b.releaseBehind()
		b.block.Release()
	}
	c.changes.close()
	c.sealed, c.history, c.holds, c.made = state{}, nil, nil, made{}
	c.records, c.spares, c.asked = nil, nil, asked{}
}
