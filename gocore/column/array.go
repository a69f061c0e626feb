package column

import (
	"unsafe"

	"ovstage/gocore/memory"
)

// An array column is a fixed column of spans, whose values lie one after another in an arena. Versions share the arena:
// a write appends its bytes behind what earlier versions know of, so that nobody's bytes change, and only the spans of the
// written rows are replaced. When the arena is full its live values move to a new one.

// Span is where the values of one row lie in an arena.
type Span struct {
	Offset, Length uint64 // bytes
}

// SpanSize is the number of bytes of a span.
const SpanSize = int(unsafe.Sizeof(Span{}))

// Spans reads the first n rows of an array column's block.
func Spans(block memory.Block, n int) []Span {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*Span)(block.Pointer()), n)
}

// Arena is a block of values, of which the first Used bytes are taken.
type Arena struct {
	Block memory.Block
	Used  int
}

// aligned rounds up, so that appended values start on a cache line. Rows follow each other without gaps: each is a whole
// number of elements, so every one is aligned to its element.
func aligned(n int) int { return (n + 63) &^ 63 }

// append copies the bytes of another arena behind those of a, and returns where they start.
func (a *Arena) append(o Arena) (base int) {
	base = aligned(a.Used)
	copy(a.Block.Bytes()[base:], o.Block.Bytes()[:o.Used])
	memory.Copied(o.Used)
	a.Used = base + o.Used
	return base
}

// room returns the arena into which the records can be appended: the one that the spans of target point into, or, when it
// is full, a new one to which the live values have moved. It returns a reference of its own.
func (c *Column) room(target memory.Block, records []record, arena Arena, live func(row int) bool, extent int) (to Arena, moved bool, err error) {
	need := 0
	for _, r := range records {
		need += aligned(r.arena.Used)
	}
	full := aligned(arena.Used)+need > arena.Block.Capacity() || arena.Block.Guarded() && arena.Block.Refs() > 1
	if arena.Block.Valid() && (need == 0 || !full) {
		if need != 0 {
			_ = arena.Block.Writable()
		}
		arena.Block.Retain()
		return arena, false, nil
	}
	spans := Spans(target, extent)
	m := newMove(arena.Used, func(visit func(from Arena, span Span)) {
		for row, span := range spans {
			if live(row) {
				visit(arena, span)
			}
		}
	})
	to.Block, err = memory.Alloc((m.total+need)*3/2, memory.Columns)
	if err != nil {
		return Arena{}, false, err
	}
	for row := range spans {
		if live(row) {
			spans[row] = m.copy(&to, arena, spans[row])
		}
	}
	memory.Copied(to.Used)
	return to, true, nil
}

// move copies arrays into another arena: those that several rows share, as the targets of a clone do, once.
type move struct {
	total int // bytes that it takes
	moved map[original]Span
}

type original struct {
	arena memory.Block
	span  Span
}

// newMove plans a move of what each visits, from arenas of which used bytes are taken.
func newMove(used int, each func(visit func(from Arena, span Span))) *move {
	m := &move{}
	each(func(_ Arena, span Span) { m.total += int(span.Length) })
	if m.total <= used {
		return m
	}
	m.moved, m.total = map[original]Span{}, 0 // some are shared
	each(func(from Arena, span Span) {
		if at := (original{from.Block, span}); m.moved[at] == (Span{}) {
			m.moved[at] = unmoved
			m.total += int(span.Length)
		}
	})
	return m
}

// unmoved stands for the place of an array that waits for its move.
var unmoved = Span{Offset: ^uint64(0)}

// copy moves one array behind those that to holds.
func (m *move) copy(to *Arena, from Arena, span Span) Span {
	at := original{from.Block, span}
	if m.moved != nil && m.moved[at] != unmoved {
		return m.moved[at]
	}
	moved := Span{uint64(to.Used), span.Length}
	to.Used += copy(to.Block.Bytes()[to.Used:], span.of(from))
	if m.moved != nil {
		m.moved[at] = moved
	}
	return moved
}

// fold appends the records' values to the arena and points the records' spans there.
func (a *Arena) fold(records []record) {
	for _, r := range records {
		if r.tombstone() || !r.arena.Block.Valid() {
			continue
		}
		base := uint64(a.append(r.arena))
		spans := Spans(r.block, r.rows.Len())
		for i := range spans {
			spans[i].Offset += base
		}
	}
}

// Values returns the values of rows, in their order, as of an ordinal: the newest at or below it, sealed or not. A row
// without one has nil. They are valid until the column changes.
func (c *Column) Values(rows Rows, ordinal uint64) [][]byte {
	values := make([][]byte, rows.Len())
	if c.sealed.block.Valid() {
		spans := Spans(c.sealed.block, c.sealed.extent)
		rows.Each(func(i, row int) {
			if c.Sealed().Live(row) {
				values[i] = spans[row].of(c.sealed.arena)
			}
		})
	}
	put := func(i int, r record, k int) {
		values[i] = nil
		if !r.tombstone() {
			values[i] = Spans(r.block, r.rows.Len())[k].of(r.arena)
		}
	}
	records := c.upTo(ordinal)
	start, interval := rows.Interval()
	p := places(nil)
	if !interval {
		p = newPlaces(rows, records)
	}
	for _, r := range records {
		if interval {
			r.rows.eachIn(start, rows.End(), func(k, row int) { put(row-start, r, k) })
		} else {
			p.each(r.rows, func(at place, k int) { put(int(at.position), r, k) })
		}
	}
	return values
}

func (s Span) of(a Arena) []byte {
	return a.Block.Bytes()[s.Offset : s.Offset+s.Length : s.Offset+s.Length]
}
