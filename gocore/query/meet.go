package query

import (
	"slices"
	"sort"

	"ovstage.dev/ovstage/gocore/bitset"
)

// Any reports whether a set holds the row of a listed prim.
func (b *Binding) Any(set *bitset.Sparse) bool {
	start, run := b.rows.Run()
	switch {
	case set.Count() == 0:
		return false
	case run:
		return set.AnyIn(start, b.rows.End())
	case b.few(set):
		return len(b.find(set)) > 0
	}
	return slices.ContainsFunc(b.rows.List(), func(row uint32) bool { return set.Has(int(row)) })
}

// All reports whether a set holds the row of every listed prim, judged without looking at lists: no may mean perhaps.
func (b *Binding) All(set *bitset.Sparse) bool {
	start, run := b.rows.Run()
	if !run {
		start = 0
	}
	rows := b.rows.End() - start
	return len(b.missing) == 0 && set.Count() >= rows && set.CountIn(start, b.rows.End()) == rows
}

// EachIn is Each for those whose row is in a set. It costs what the set holds, or what the list does where that is less.
func (b *Binding) EachIn(set *bitset.Sparse, f func(position int, row uint32)) { b.meet(set).each(f) }

// meeting is the listed prims whose rows are in a set: at most so many, and a walk over them in list order.
type meeting struct {
	most int
	each func(f func(position int, row uint32))
}

func (b *Binding) meet(set *bitset.Sparse) meeting {
	start, run := b.rows.Run()
	switch {
	case set.Count() == 0:
		return meeting{0, func(func(int, uint32)) {}}
	case run:
		end := b.rows.End()
		return meeting{set.CountIn(start, end), func(f func(position int, row uint32)) {
			at := b.positions()
			set.EachIn(start, end, func(row int) { f(at(row-start), uint32(row)) })
		}}
	case b.few(set):
		found := b.find(set)
		return meeting{len(found), func(f func(position int, row uint32)) {
			at, rows := b.positions(), b.rows.List()
			for _, i := range found {
				f(at(int(i)), rows[i])
			}
		}}
	}
	return b.walk(set)
}

// walk meets a set by going through the list of rows.
func (b *Binding) walk(set *bitset.Sparse) meeting {
	return meeting{b.rows.Len(), func(f func(position int, row uint32)) {
		at := b.positions()
		for i, row := range b.rows.List() {
			if set.Has(int(row)) {
				f(at(i), row)
			}
		}
	}}
}

// positions returns a function that says at which position of the list the i-th row is, to be asked for rising i. The missing
// positions before it are counted in steps that double, so that neighbours cost one and leaps no more than they must.
func (b *Binding) positions() func(i int) int {
	if len(b.missing) == 0 {
		return func(i int) int { return i }
	}
	skipped := 0
	follows := func(k, i int) bool { return int(b.missing[k])-k > i } // the k-th missing position follows the i-th row
	return func(i int) int {
		step := 1
		for skipped+step <= len(b.missing) && !follows(skipped+step-1, i) {
			skipped += step
			step *= 2
		}
		skipped += sort.Search(min(step, len(b.missing)-skipped), func(k int) bool { return follows(skipped+k, i) })
		return i + skipped
	}
}

// few reports whether to look up the rows of a set costs less than to go through the list.
func (b *Binding) few(set *bitset.Sparse) bool {
	return b.rows.Len() >= minInverse && set.Count() <= b.rows.Len()/perInverse
}

// find returns the indices, in the list of rows, of those in a set, ascending.
func (b *Binding) find(set *bitset.Sparse) []uint32 {
	rows := b.rows.List()
	if b.inverse == nil {
		b.inverse = newInverse(rows, b.rows.End())
	}
	return b.inverse.find(rows, set)
}

// inverse finds at which indices a list of rows names a row. Rows lie in buckets of equally many rows, one row each where
// the list names about as many as the column has: so that it holds three numbers for each row that is listed, at most.
type inverse struct {
	shift   int
	begins  []uint32 // where the entries of a bucket begin
	entries []uint32 // indices into the list, ascending in each bucket
}

func newInverse(rows []uint32, end int) *inverse {
	v := &inverse{entries: make([]uint32, len(rows))}
	for end>>v.shift >= 2*len(rows) {
		v.shift++
	}
	buckets := (end-1)>>v.shift + 1
	begins := make([]uint32, buckets+2) // two ahead while it counts, one ahead while it fills
	for _, row := range rows {
		begins[row>>v.shift+2]++
	}
	for bucket := range buckets {
		begins[bucket+2] += begins[bucket+1]
	}
	for i, row := range rows {
		bucket := row>>v.shift + 1
		v.entries[begins[bucket]] = uint32(i)
		begins[bucket]++
	}
	v.begins = begins[:buckets+1]
	return v
}

// find returns the indices at which the list names a row of a set, ascending. A row that is listed twice has two.
func (v *inverse) find(rows []uint32, set *bitset.Sparse) []uint32 {
	found := make([]uint32, 0, set.Count())
	set.EachIn(0, (len(v.begins)-1)<<v.shift, func(row int) {
		bucket := row >> v.shift
		for _, i := range v.entries[v.begins[bucket]:v.begins[bucket+1]] {
			if int(rows[i]) == row {
				found = append(found, i)
			}
		}
	})
	slices.Sort(found)
	return found
}
