package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/invariants"
	"ovstage.dev/ovstage/gocore/memory"
)

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

	// The sets of the last time that there were holes, for the next time: of [0, filled), and of none.
	full, none bitset.Set
	filled     int

	// Of an earlier state without a block: the state that followed it, and what that one changed.
	next *state
	undo undo
}

func (s *state) release() {
	s.block.Release()
	s.arena.Block.Release()
	s.undo.release()
}

// made is an earlier state that was asked for as a whole.
type made struct {
	state
	of *state // that of the history; nil for none
}

// tells returns the sets that tell of a row whether it holds a value and whether it is deleted, and where in them.
func (s *state) tells(row int) (live, gone bitset.Set, at int) {
	for ; s.next != nil; s = s.next {
		if i, found := s.undo.find(row); found {
			return s.undo.live, s.undo.gone, i
		}
	}
	return s.live, s.gone, row
}

// Snapshot is a sealed state as a reader gets it. It is valid until the column changes; a caller that needs the bytes for
// longer retains their block.
type Snapshot struct{ *state }

// Block holds the rows; it is no block while nothing is sealed, nor of an earlier state that was not made (Column.Make).
func (s Snapshot) Block() memory.Block { return s.block }

// Arena is what the spans of an array column point into.
func (s Snapshot) Arena() Arena {
	base := s.state
	for base.next != nil {
		base = base.next
	}
	return Arena{base.arena.Block, s.arena.Used}
}

// Extent is the number of rows in Block.
func (s Snapshot) Extent() int { return s.extent }

// Rows is how many of them hold a value.
func (s Snapshot) Rows() int { return s.rows }

// Ordinal is the highest ordinal of a change in it.
func (s Snapshot) Ordinal() uint64 { return s.ordinal }

// Shape rises when rows are added, removed or deleted: what was worked out for one shape is true as long as it lasts.
func (s Snapshot) Shape() uint64 { return s.shape }

// Generation rises when rows are added or removed.
func (s Snapshot) Generation() uint64 { return s.generation }

// Live reports whether a row holds a value.
func (s Snapshot) Live(row int) bool {
	if row >= s.extent || s.rows == s.extent {
		return row < s.extent
	}
	live, _, at := s.tells(row)
	return live == nil || live.Has(at)
}

// Gone reports whether a row is deleted.
func (s Snapshot) Gone(row int) bool {
	if s.lost == 0 || row >= s.extent {
		return false
	}
	_, gone, at := s.tells(row)
	return gone.Has(at)
}

// Deleted is the number of deleted rows.
func (s Snapshot) Deleted() int { return s.lost }

// Holes returns the rows in [from, to) that hold no value. It goes through the set of those that do, a word at a time.
func (s Snapshot) Holes(from, to int) (rows []uint32) {
	if s.next != nil {
		for row := from; row < to; row++ {
			if !s.Live(row) {
				rows = append(rows, uint32(row))
			}
		}
		return rows
	}
	within := min(to, s.extent)
	if s.live != nil {
		rows = s.live.Missing(rows, from, within)
	}
	for row := max(from, within); row < to; row++ {
		rows = append(rows, uint32(row))
	}
	return rows
}

// AllLive returns the rows that hold a value, in the newest state or one that was made. It stays as it is when the column goes on.
func (s Snapshot) AllLive() bitset.Set {
	if s.live != nil {
		return slices.Clone(s.live)
	}
	live := bitset.New(s.extent)
	live.AddRange(0, s.extent)
	return live
}

// Dense reports whether every row below n holds a value.
func (s Snapshot) Dense(n int) bool { return s.rows == s.extent && n <= s.extent }

// follow applies records to the sets of live and deleted rows, in order, and reports whether the live rows changed.
func (s *state) follow(records []record) bool {
	rows, extent, before := s.rows, s.extent, s.lives(records)
	for _, r := range records {
		if r.tombstone() {
			s.markDeleted(r.rows)
		} else {
			s.markLive(r.rows)
		}
	}
	changed := s.rows != rows || !slices.Equal(before, s.lives(records)) // only rows that deletes name may be lost
	if changed || len(before) > 0 || s.extent != extent {
		s.shape++
	}
	if s.rows == s.extent && s.live != nil {
		s.full, s.filled, s.live = s.live, s.extent, nil
		s.none, s.gone, s.lost = s.gone, nil, 0
	}
	return changed
}

// lives tells of each row that deletes among records name whether it holds a value.
func (s *state) lives(records []record) (live []bool) {
	for _, r := range records {
		if r.tombstone() {
			r.rows.each(func(row int) { live = append(live, Snapshot{s}.Live(row)) })
		}
	}
	return live
}

// markLive marks rows as holding a value and reaches up to them. Rows that follow the last one without a gap, and rows
// that hold one already, cost nothing each when they are consecutive.
func (s *state) markLive(rows Rows) {
	start, run := rows.Run()
	if s.live == nil {
		if rows.End() <= s.extent {
			return
		}
		if run && start <= s.extent {
			s.extent, s.rows = rows.End(), rows.End()
			return
		}
	}
	s.open(rows.End())
	if run {
		s.rows += rows.Len() - s.live.CountIn(start, rows.End())
		s.live.AddRange(start, rows.End())
		if s.gone.AnyIn(start, rows.End()) {
			rows.each(s.revive)
		}
		return
	}
	rows.each(func(row int) {
		if !s.live.Has(row) {
			s.live.Add(row)
			s.rows++
		}
		s.revive(row)
	})
}

func (s *state) revive(row int) {
	if s.gone.Has(row) {
		s.gone.Remove(row)
		s.lost--
	}
}

// markDeleted marks rows as deleted.
func (s *state) markDeleted(rows Rows) {
	s.open(rows.End())
	if s.gone == nil {
		s.gone, s.none = s.none, nil
	}
	s.gone = s.gone.Grow(s.extent)
	rows.each(func(row int) {
		if s.live.Has(row) {
			s.live.Remove(row)
			s.rows--
		}
		if !s.gone.Has(row) {
			s.gone.Add(row)
			s.lost++
		}
	})
}

// open tells rows apart, one bit each, from now on, and reaches up to extent; new rows start as holes.
func (s *state) open(extent int) {
	reach := max(extent, s.extent)
	if s.live == nil {
		s.live, s.full = s.full.Grow(reach), nil
		s.live.AddRange(s.filled, s.extent)
		s.filled = 0
	}
	s.live, s.extent = s.live.Grow(reach), reach
}

// mustBeWhole states that the sets of rows agree with their counts and that every row lies in the block.
func (s *state) mustBeWhole(rows, width int) {
	if !invariants.Enabled {
		return
	}
	invariants.Check(s.extent <= rows, "the state has %d rows, the column %d", s.extent, rows)
	live := s.extent
	if s.live != nil {
		live = s.live.Count()
	}
	invariants.Check(live == s.rows, "%d rows live, counted are %d", live, s.rows)
	invariants.Check(s.gone.Count() == s.lost, "%d rows are deleted, counted are %d", s.gone.Count(), s.lost)
	invariants.Check(!s.live.Meets(s.gone), "a row lives and is deleted")
	invariants.Check(s.live.CountIn(s.extent, 64*len(s.live)) == 0, "a row lives beyond the %d that there are", s.extent)
	if s.rows == 0 {
		return // nothing but deletes may never have had a block
	}
	invariants.Check(s.block.Refs() > 0, "the block of the sealed state was released")
	mustHold(s.block.Bytes(), s.extent, width)
	if s.arena.Block.Valid() {
		for row, span := range Spans(s.block, s.extent) {
			if s.live == nil || s.live.Has(row) {
				end := span.Offset + span.Length
				invariants.Check(end <= uint64(s.arena.Used), "the array of row %d ends at %d of %d", row, end, s.arena.Used)
			}
		}
	}
}
