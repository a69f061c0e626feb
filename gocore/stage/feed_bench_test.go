package stage

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// What a range read costs whose range has 24 changed rows, by the size of the column, what is asked, and how the list lies in
// it. With -short columns end at a million rows.
func BenchmarkFeed(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000, 10_000_000} {
		if n > 1_000_000 && testing.Short() {
			continue
		}
		f := newFeed(b, n)
		last := f.ordinal
		for _, q := range []QueryID{f.other, f.twice, f.half} { // their lists are inverted once
			f.range24(b, q, last, last)
		}
		ahead := last + 1 // not sealed
		_, err := f.stage.Write(f.few, []Write{{f.name, payload(float3Type, f.rows)}}, ahead, Upsert)
		require.Nil(b, err)
		for _, c := range []struct {
			what       string
			query      QueryID
			start, end uint64
		}{
			{"few", f.few, last, last}, {"all", f.all, last, last}, {"other", f.other, last, last},
			{"twice", f.twice, last, last}, {"half", f.half, last, last}, {"filter", f.filter, last, last},
			{"all-100-ordinals", f.all, last - 99, last}, {"other-100-ordinals", f.other, last - 99, last},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.what, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f.range24(b, c.query, c.start, c.end)
				}
			})
		}
		for _, c := range []struct {
			what  string
			query QueryID
		}{{"since-of-all", 0}, {"since-of-a-list", f.other}} {
			b.Run(fmt.Sprintf("%s/%d", c.what, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					read, _, err := f.stage.ReadSince(c.query, []Cursor{{Attribute: f.name, Since: last - 1}})
					require.Nil(b, err)
					f.take(b, read)
				}
			})
		}
	}
}

// feed is a column in which the same 24 rows changed a hundred times, and lists that ask for them.
type feed struct {
	stage   *Stage
	dict    *pathdict.Dictionary
	name    pathdict.Token
	rows    []float3
	ordinal uint64

	few    QueryID // the prims that change
	all    QueryID // all, in the order of the column
	other  QueryID // all, in another order
	twice  QueryID // all in another order, and again
	half   QueryID // those that change and every second one
	filter QueryID
}

func newFeed(b *testing.B, n int) *feed {
	s, dict, paths, all, name := benchStage(b, n)
	f := &feed{stage: s, dict: dict, name: name, rows: make([]float3, 24), ordinal: 1, all: all}
	write(b, s, all, name, 1, make([]float3, n))
	some := make([]string, len(f.rows))
	for i := range some {
		some[i] = paths[i*n/24+rand.IntN(max(1, n/24))]
	}
	turned := append(append([]string{}, paths[n/2:]...), paths[:n/2]...)
	turned[0], turned[1] = turned[1], turned[0]
	half := append([]string{}, some...)
	for i := 0; i < n; i += 2 {
		half = append(half, paths[i])
	}
	f.few, f.other = benchQuery(b, s, dict, some), benchQuery(b, s, dict, turned)
	f.twice, f.half = benchQuery(b, s, dict, append(turned, turned...)), benchQuery(b, s, dict, half)
	var err error
	f.filter, _, err = s.QueryFilter(Condition{Predicate: Predicate{Attribute: name}}, nil)
	require.Nil(b, err)
	for range 100 {
		f.ordinal++
		write(b, s, f.few, name, f.ordinal, f.rows)
	}
	return f
}

// range24 reads a range in which the 24 prims changed.
func (f *feed) range24(b *testing.B, q QueryID, start, end uint64) {
	read, _, err := f.stage.Read(q, []pathdict.Token{f.name}, Range{Start: start, End: end, HasStart: true})
	require.Nil(b, err)
	f.take(b, read)
}

func (f *feed) take(b *testing.B, read ReadID) {
	g, _ := f.stage.FetchRead(read)
	if g.PrimCount < 24 {
		b.Fatal(g.PrimCount)
	}
	g.Release(f.dict)
	_, _ = f.stage.ReleaseRead(read)
}
