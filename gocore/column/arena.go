package column

import (
	"unsafe"

	"ovstage.dev/ovstage/gocore/memory"
)

// SpanSize is the number of bytes of a span.
const SpanSize = int(unsafe.Sizeof(Span{}))

// An array column is a fixed column of spans, whose values lie one after another in an arena. Versions share the arena: a write
// appends its bytes behind what earlier versions know of, so that no reader's bytes change, and only the spans of the written
// rows are replaced. When the arena is full its live values move to a new one.

// Span is where the values of one row lie in an arena.
type Span struct {
	Offset, Length uint64 // bytes
}

// Spans reads the first n rows of an array column's block.
func Spans(block memory.Block, n int) []Span {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*Span)(block.Pointer()), n)
}

func (s Span) of(a Arena) []byte {
	return a.Block.Bytes()[s.Offset : s.Offset+s.Length : s.Offset+s.Length]
}

// Arena is a block of values, of which the first Used bytes are taken.
type Arena struct {
	Block memory.Block
	Used  int
}

// append copies the bytes of another arena behind those of a, and returns where they start.
func (a *Arena) append(o Arena) (base int) {
	base = aligned(a.Used)
	copy(a.Block.Bytes()[base:], o.Block.Bytes()[:o.Used])
	memory.Copied(o.Used)
	a.Used = base + o.Used
	return base
}

// aligned rounds up, so that appended values start on a cache line. Rows follow each other without gaps: each is a whole
// number of elements, so every one is aligned to its element.
func aligned(n int) int { return (n + 63) &^ 63 }

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

// unmoved stands for the span of an array that waits for its move.
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
