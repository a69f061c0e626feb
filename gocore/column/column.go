// Package column stores the rows of one attribute that share a schema: the sealed state that readers share, the writes
// that are not sealed yet, and the buffers that move between the two.
//
// # Versions
//
// The sealed state is one flat buffer. As soon as a reader may hold it, it is immutable: it is replaced, never changed,
// and the reader's reference keeps the old one. Everything above the write floor waits as records, ordered by ordinal
// and then by submission: a record is a set of rows and their packed bytes. Sealing folds the records up to the floor
// into the sealed state. A record that covers every row becomes the new buffer as it is; records of a few rows are
// scattered in place when nobody holds the sealed buffer, else into the column's previous buffer, which is first brought
// up to date by the rows that changed since it was current. So a write costs what it touches, and a covering write or an
// adopted map costs nothing at sealing.
//
// # Concurrency
//
// A Column has no lock of its own: the stage that owns it serialises every call. Buffers are reference counted and may
// be released by any thread; a count of one, seen under the stage's lock, means that nobody else can reach the bytes.
package column

import (
	"slices"

	"ovstage/gocore/bitset"
	"ovstage/gocore/memory"
	"ovstage/gocore/tensor"
)

// Schema says what the bytes of a column are. Two columns of one attribute differ in it.
type Schema struct {
	DType    tensor.DType    // element type; Lanes is the whole tuple width
	Array    bool            // one variable-length array per row instead of one value
	Semantic tensor.Semantic // role of the bytes
	Type     Type            // what they are called where they come from; zero: nobody has said
}

// Type is the name of a type, such as that of a USD value: it tells apart what element type and role do not.
type Type struct {
	Token uint64 // its number, for who asks
	Name  string
}

// String names the schema for error texts: "float32x3 POINT".
func (s Schema) String() string {
	text := s.DType.String()
	if s.Array {
		text += "[]"
	}
	if s.Semantic != 0 {
		text += " " + s.Semantic.String()
	}
	return text
}

// Spelled is String with the name of the type, for schemas that nothing else tells apart.
func (s Schema) Spelled() string {
	if s.Type == (Type{}) {
		return s.String() + " without a type name"
	}
	return s.String() + " (" + s.Type.Name + ")"
}

// Column holds the rows of one attribute with one schema.
type Column struct {
	schema Schema
	width  int // bytes of a row
	table
	sealed     state
	history    []state  // earlier sealed states that are still served, oldest first
	keep       uint64   // ordinals at and below the floor whose states are kept; 0 and 1 = the newest only
	records    []record // unsealed writes and deletes, by ordinal, then submission
	rewritten  recent   // the rows of the newest records
	tombstones int      // deletes among records

	tried        uint64 // the frontier and the history when rows could not be given up
	triedHistory int

	changes changes
	retired []buffer // earlier sealed buffers, newest first, kept for reuse
}

// state is what readers see: rows [0, extent) of block. Rows below extent that hold no value are holes; those that were
// deleted are marked as gone, the others have never been sealed.
type state struct {
	block   memory.Block
	arena   Arena // array columns: what the spans in block point into
	extent  int
	rows    int        // live rows; equal to extent when there are no holes
	live    bitset.Set // nil without holes
	gone    bitset.Set // nil without deletes
	ordinal uint64     // highest ordinal folded in

	generation uint64 // rises when the live rows change; 0 before the first
	shape      uint64 // rises when the live or the deleted rows may have changed
	lost       int    // deleted rows
}

func (s *state) release() {
	s.block.Release()
	s.arena.Block.Release()
}

// buffer is a block that held an earlier sealed state of this column. behind lists the rows that changed since; once
// they are too many to be worth replaying the block is merely memory of the right size (stale).
type buffer struct {
	block  memory.Block
	extent int // rows that it held
	behind []Rows
	rows   int
	stale  bool
}

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

// Added is the number of rows that were ever given to prims: it rises with each.
func (c *Column) Added() uint64 { return c.added }

// Rows is the number of rows that exist, sealed or not.
func (c *Column) Rows() int { return len(c.paths) }

// Row returns the row of a path (a dense path index), or -1.
func (c *Column) Row(path uint32) int { return c.row(path) }

// Run returns the first of consecutive rows that hold exactly these paths in order, or -1.
func (c *Column) Run(paths []uint32) int { return c.run(paths) }

// Add gives rows to paths that have none, consecutive and in order; the caller does not change paths afterwards. The rows hold
// no state until a write names them. Rows that deleted prims gave up are used again when enough of them lie together.
func (c *Column) Add(paths []uint32) Rows { return Interval(c.table.add(paths), len(paths)) }

// Epoch rises when rows are given up: what was looked up before is no longer true.
func (c *Column) Epoch() uint64 { return c.epoch }

// Unsealed reports whether writes wait for the floor.
func (c *Column) Unsealed() bool { return len(c.records) > 0 }

// Buffer returns a block of at least size bytes for a payload that may cover the column. It prefers one that the column
// used before and that nobody holds: its pages are warm, and its contents, if private is asked for, are this column's
// own. Otherwise private buffers are zeroed and others hold unspecified bytes.
func (c *Column) Buffer(size int, private bool) (memory.Block, error) {
	for i := len(c.retired) - 1; i >= 0; i-- {
		b := c.retired[i]
		room := b.block.Capacity()
		if private {
			room = b.block.Size() // what lies beyond was never this column's
		}
		if b.block.Refs() == 1 && room >= size && b.block.Capacity() <= 2*size {
			b.forget()
			c.retired = slices.Delete(c.retired, i, i+1)
			return b.block.Writable(), nil
		}
	}
	if private {
		return memory.AllocZeroed(size, memory.Columns)
	}
	return memory.Alloc(size, memory.Columns)
}

// Bytes is the memory that the column holds, reusable buffers included.
func (c *Column) Bytes() int {
	total := c.sealed.block.Capacity() + c.sealed.arena.Block.Capacity() // no block has none
	for _, r := range c.records {
		total += r.block.Capacity() + r.arena.Block.Capacity()
	}
	for _, b := range c.retired {
		total += b.block.Capacity()
	}
	if len(c.history) == 0 {
		return total
	}
	known := map[memory.Block]struct{}{c.sealed.block: {}, c.sealed.arena.Block: {}} // states may share them
	for _, b := range c.retired {
		known[b.block] = struct{}{}
	}
	for _, s := range c.history {
		for _, b := range []memory.Block{s.block, s.arena.Block} {
			if _, again := known[b]; !again {
				known[b] = struct{}{}
				total += b.Capacity()
			}
		}
	}
	return total
}

// Close gives every buffer back; readers keep those that they hold.
func (c *Column) Close() {
	c.sealed.release()
	c.forgetHistory(len(c.history))
	for _, r := range c.records {
		r.rows.Release()
		r.block.Release()
		r.arena.Block.Release()
	}
	for _, b := range c.retired {
		b.forget()
		b.block.Release()
	}
	c.changes.close()
	c.sealed, c.records, c.retired = state{}, nil, nil
}

// Snapshot is a sealed state as a reader gets it. It is valid until the column changes; whoever needs the bytes for longer
// retains their block.
type Snapshot struct{ *state }

// Block holds the rows; it is no block while nothing is sealed.
func (s Snapshot) Block() memory.Block { return s.block }

// Arena is what the spans of an array column point into.
func (s Snapshot) Arena() memory.Block { return s.arena.Block }

// Extent is the number of rows in Block.
func (s Snapshot) Extent() int { return s.extent }

// Ordinal is the highest ordinal of a change in it.
func (s Snapshot) Ordinal() uint64 { return s.ordinal }

// Shape rises when rows are added, removed or deleted: what was worked out for one shape is true as long as it lasts.
func (s Snapshot) Shape() uint64 { return s.shape }

// Generation rises when rows are added or removed.
func (s Snapshot) Generation() uint64 { return s.generation }

// Live reports whether a row holds a value.
func (s Snapshot) Live(row int) bool {
	return row < s.extent && (s.live == nil || s.live.Has(row))
}

// Gone reports whether a row is deleted.
func (s Snapshot) Gone(row int) bool { return s.gone.Has(row) }

// AllLive returns the rows that hold a value. It stays as it is when the column goes on.
func (s Snapshot) AllLive() bitset.Set {
	if s.live != nil {
		return slices.Clone(s.live)
	}
	live := bitset.New(s.extent)
	live.AddRange(0, s.extent)
	return live
}

// Dense reports whether every row below n holds a value.
func (s Snapshot) Dense(n int) bool { return s.live == nil && n <= s.extent }

// Sealed returns the newest sealed state.
func (c *Column) Sealed() Snapshot { return Snapshot{&c.sealed} }

// Deletes reports whether any row is deleted, sealed or not. Without deletes every row holds a value.
func (c *Column) Deletes() bool { return c.tombstones > 0 || c.sealed.gone != nil }

// Deleting reports whether deletes wait for the floor.
func (c *Column) Deleting() bool { return c.tombstones > 0 }

// Settled reports whether a write to rows can't bring any of them back from a delete. It costs nothing per row as long as
// nothing is deleted.
func (c *Column) Settled(rows Rows) bool {
	return !c.Deletes() || c.tombstones == 0 && !rows.Any(c.sealed.gone)
}

// Alive tells which of rows hold a value at an ordinal: whose newest state at or below it, sealed or not, is not a delete.
// The answer is in the order of rows.
func (c *Column) Alive(rows Rows, ordinal uint64) []bool {
	alive := make([]bool, 0, rows.Len())
	sealed := c.Sealed()
	rows.each(func(row int) { alive = append(alive, sealed.Live(row)) })
	records := c.upTo(ordinal)
	if start, interval := rows.Interval(); interval {
		for _, r := range records {
			r.rows.eachIn(start, rows.End(), func(_, row int) { alive[row-start] = !r.tombstone() })
		}
		return alive
	}
	p := newPlaces(rows, records)
	for _, r := range records {
		p.each(r.rows, func(at place, _ int) { alive[at.position] = !r.tombstone() })
	}
	return alive
}

// AllAlive is Alive for every row of the column, as a set.
func (c *Column) AllAlive(ordinal uint64) bitset.Set {
	alive := bitset.New(len(c.paths))
	alive.AddRange(0, c.sealed.extent)
	if c.sealed.live != nil {
		copy(alive, c.sealed.live)
	}
	for _, r := range c.upTo(ordinal) {
		if r.tombstone() {
			r.rows.each(alive.Remove)
		} else {
			r.rows.mark(alive)
		}
	}
	return alive
}

// DeletedAbove returns the rows that unsealed deletes above an ordinal name.
func (c *Column) DeletedAbove(ordinal uint64) bitset.Set {
	var rows bitset.Set
	for _, r := range c.records[len(c.upTo(ordinal)):] {
		if r.tombstone() {
			rows = rows.Grow(r.rows.End())
			r.rows.mark(rows)
		}
	}
	return rows
}

// Newest reports whether a payload for rows at an ordinal would replace everything and be the last to do so.
func (c *Column) Newest(rows Rows, ordinal uint64) bool {
	return rows.covers(len(c.paths)) && (len(c.records) == 0 || c.records[len(c.records)-1].ordinal <= ordinal)
}

// Above reports whether an unsealed write or delete above an ordinal names any of rows.
func (c *Column) Above(rows Rows, ordinal uint64) bool {
	above := c.records[len(c.upTo(ordinal)):]
	if rows.Len() == 0 || len(above) == 0 {
		return false
	}
	named := bitset.New(len(c.paths))
	for _, r := range above {
		r.rows.mark(named)
	}
	return rows.Any(named)
}

// FirstUnsealed looks for an unsealed write at or below ordinal to one of rows, none of which has sealed state.
func (c *Column) FirstUnsealed(rows []uint32, ordinal uint64) (row int, at uint64, found bool) {
	if len(rows) == 0 {
		return 0, 0, false
	}
	wanted := bitset.New(len(c.paths))
	for _, row := range rows {
		wanted.Add(int(row))
	}
	for _, r := range c.upTo(ordinal) {
		if !r.rows.Any(wanted) {
			continue
		}
		for row = range len(c.paths) {
			if wanted.Has(row) && r.rows.has(row) {
				return row, r.ordinal, true
			}
		}
	}
	return 0, 0, false
}

// Path returns the path (a dense path index) of a row.
func (c *Column) Path(row int) uint32 { return c.paths[row] }
