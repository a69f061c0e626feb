package stage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
)

func one(x float32) float3 { return float3{x, x + 0.25, x + 0.5} }

func many(xs ...float32) []float3 {
	values := make([]float3, len(xs))
	for i, x := range xs {
		values[i] = one(x)
	}
	return values
}

// Two ordinals wait on one column while a reader holds the sealed state. Each seal serves exactly its own ordinal, in
// whichever order the two were submitted, and the reader's bytes never change.
func TestUnsealedOrdinalsDoNotDependOnSubmissionOrder(t *testing.T) {
	type submission struct {
		ordinal uint64
		partial bool
		value   float32
	}
	for name, submissions := range map[string][]submission{
		"dense, ascending":               {{5, false, 50}, {7, false, 70}},
		"dense, descending":              {{7, false, 70}, {5, false, 50}},
		"partial, ascending":             {{5, true, 50}, {7, true, 70}},
		"partial, descending":            {{7, true, 70}, {5, true, 50}},
		"dense then partial, ascending":  {{5, false, 50}, {7, true, 70}},
		"dense then partial, descending": {{7, true, 70}, {5, false, 50}},
		"partial then dense, ascending":  {{5, true, 50}, {7, false, 70}},
		"partial then dense, descending": {{7, false, 70}, {5, true, 50}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			all, part := f.query("/a", "/b", "/c"), f.query("/c", "/a")
			f.write(all, "p", 1, many(1, 2, 3)...)
			f.seal(1)
			held := f.group(all, "p", 1)

			expected := map[uint64][]float3{5: many(1, 2, 3), 7: nil}
			var at7 submission
			for _, s := range submissions {
				if s.partial {
					f.write(part, "p", s.ordinal, many(s.value+2, s.value)...)
				} else {
					f.write(all, "p", s.ordinal, many(s.value, s.value+1, s.value+2)...)
				}
				if s.ordinal == 5 {
					expected[5] = apply(expected[5], s.partial, s.value)
				} else {
					at7 = s
				}
			}
			expected[7] = apply(expected[5], at7.partial, at7.value)

			assert.Equal(t, many(1, 2, 3), f.read(all, "p", 4), "unsealed writes are invisible")
			f.seal(5)
			assert.Equal(t, expected[5], f.read(all, "p", 5))
			f.seal(6)
			assert.Equal(t, expected[5], f.read(all, "p", 6))
			f.seal(7)
			assert.Equal(t, expected[7], f.read(all, "p", 7))
			assert.Equal(t, many(1, 2, 3), rows[float3](held), "a reader's bytes never change")
		})
	}
}

func apply(values []float3, partial bool, value float32) []float3 {
	if partial {
		return []float3{one(value), values[1], one(value + 2)}
	}
	return many(value, value+1, value+2)
}

// A late write below an ordinal whose buffer was adopted is seen at its own ordinal and does not override the later one.
func TestLateWriteBelowAnAdoptedOrdinal(t *testing.T) {
	f := newFixture(t)
	all, part := f.query("/a", "/b"), f.query("/b")
	f.write(all, "p", 1, many(1, 2)...)
	f.seal(1)
	m := f.mapFloat3(all, "p", 7, Discard)
	copy(m.values(), many(70, 71))
	require.Nil(t, m.unmap())
	f.write(part, "p", 5, one(51))
	f.write(part, "p", 8, one(81))

	f.seal(5)
	assert.Equal(t, many(1, 51), f.read(all, "p", 5))
	f.seal(7)
	assert.Equal(t, many(70, 71), f.read(all, "p", 7))
	f.seal(8)
	assert.Equal(t, many(70, 81), f.read(all, "p", 8))
}

// Prims that are inserted above the floor change nothing for readers of the sealed state: no failure, the same groups,
// the same layout generation.
func TestPrimsInsertedAboveTheFloor(t *testing.T) {
	f := newFixture(t)
	old := f.query("/a", "/b")
	f.write(old, "p", 1, many(1, 2)...)
	f.seal(1)
	before := f.group(old, "p", 1)

	wider := f.query("/a", "/n", "/b")
	f.write(wider, "p", 2, many(10, 11, 12)...)

	after := f.group(old, "p", 1)
	assert.Equal(t, before.Generation, after.Generation)
	assert.Equal(t, address(before.Data), address(after.Data))
	assert.Equal(t, before.Rows, after.Rows)
	assert.Equal(t, many(1, 2), rows[float3](after))

	wide := f.group(wider, "p", 1)
	assert.EqualValues(t, 2, wide.Count, "the new prim has nothing at or below 1")
	assert.Equal(t, []uint32{0, 2}, wide.PrimMap.Uint32s(2))

	_, _, failure := f.Read(wider, []pathdict.Token{f.token("p")}, Range{End: 2})
	require.NotNil(t, failure, "at 2 the new prim is written but not sealed")
	assert.Equal(t, WriteFloorViolation, CodeOf(failure))
	assert.Contains(t, failure.Error(), "/n")

	f.seal(2)
	sealed := f.group(wider, "p", 2)
	assert.Greater(t, sealed.Generation, before.Generation)
	assert.Equal(t, many(10, 11, 12), rows[float3](sealed))
	assert.Equal(t, many(10, 12), f.read(old, "p", 2))
}

// Rows that are added later but sealed earlier leave holes, which readers do not see.
func TestRowsSealedOutOfTheOrderOfTheirCreation(t *testing.T) {
	f := newFixture(t)
	a, b, all := f.query("/a"), f.query("/b"), f.query("/b", "/a")
	f.write(a, "p", 7, one(7))
	f.write(b, "p", 5, one(5))
	f.seal(5)
	assert.Empty(t, f.groups(a, "p", 5))
	g := f.group(all, "p", 5)
	assert.EqualValues(t, 1, g.Count)
	assert.Equal(t, many(5), rows[float3](g))
	f.seal(7)
	assert.Equal(t, many(5, 7), f.read(all, "p", 7))
}

// A column is one group in the order of the query, without an index map, whenever its rows lie that way.
func TestGrouping(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b", "/c", "/d")
	f.write(all, "p", 1, many(1, 2, 3, 4)...)
	f.seal(1)
	whole := f.group(all, "p", 1)
	assert.False(t, whole.DataMap.Valid())
	assert.Zero(t, whole.DataOffset)

	slice := f.group(f.query("/b", "/c"), "p", 1)
	assert.False(t, slice.DataMap.Valid(), "a contiguous part is a slice")
	assert.Equal(t, float3Type.Size(), slice.DataOffset)
	assert.Equal(t, 2, slice.Rows)
	assert.Equal(t, address(whole.Data), address(slice.Data))

	scattered := f.group(f.query("/d", "/missing", "/a"), "p", 1)
	assert.Equal(t, []uint32{3, 0}, scattered.DataMap.Uint32s(2))
	assert.Equal(t, []uint32{0, 2}, scattered.PrimMap.Uint32s(2))
	assert.Equal(t, 4, scattered.Rows)

	twice := f.group(f.query("/b", "/b"), "p", 1)
	assert.Equal(t, many(2, 2), rows[float3](twice), "a prim that is listed twice is reported twice")

	f.write(f.query("/b"), "p", 2, one(20))
	f.write(f.query("/x", "/y"), "p", 3, many(8, 9)...)
	f.seal(3)
	later := f.group(all, "p", 3)
	assert.False(t, later.DataMap.Valid(), "still one group after partial writes and other prims joined")
	assert.Equal(t, many(1, 20, 3, 4), rows[float3](later))
}

// A client that makes a new query over a new list for every write causes no per-row work after the first.
func TestFreshQueriesEveryTick(t *testing.T) {
	f := newFixture(t)
	paths := []string{"/w/a", "/w/b", "/w/c", "/w/d"}
	subset := []string{"/w/d", "/w/b"}
	tick := func(ordinal uint64) {
		all, part := f.query(paths...), f.query(subset...)
		f.write(all, "p", ordinal, many(1, 2, 3, 4)...)
		f.write(part, "p", ordinal, many(5, 6)...)
		f.seal(ordinal)
		assert.Equal(t, many(1, 6, 3, 5), f.read(all, "p", ordinal))
		for _, q := range []QueryID{all, part} {
			_, err := f.ReleaseQuery(q)
			require.Nil(t, err)
		}
	}
	tick(1)
	tick(2)
	resolved := f.Counters().RowsResolved
	for ordinal := uint64(3); ordinal < 50; ordinal++ {
		tick(ordinal)
	}
	assert.Equal(t, resolved, f.Counters().RowsResolved)
	assert.Zero(t, f.Counters().LiveQueries)
}

// Reading does not copy: every read of one snapshot shares its buffer, and so does a slice of it.
func TestReadsShareTheSealedBuffer(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b")
	f.write(all, "p", 1, many(1, 2)...)
	f.seal(1)
	assert.Equal(t, address(f.group(all, "p", 1).Data), address(f.group(all, "p", 1).Data))
}

// Steady rewriting reuses the column's own buffers: memory stays at two, three while a reader holds a snapshot.
func TestSteadyRewritingHoldsTwoBuffers(t *testing.T) {
	f := newFixture(t)
	paths := make([]string, 5000)
	values := make([]float3, len(paths))
	for i := range paths {
		paths[i] = "/p" + string(rune('a'+i%26)) + itoa(i)
	}
	all := f.query(paths...)
	f.write(all, "p", 1, values...)
	f.seal(1)
	size := f.Counters().BytesColumns
	seen := map[uintptr]bool{}
	for ordinal := uint64(2); ordinal < 40; ordinal++ {
		f.write(all, "p", ordinal, values...)
		f.seal(ordinal)
		read, _, err := f.Read(all, []pathdict.Token{f.token("p")}, Range{End: ordinal})
		require.Nil(t, err)
		g, err := f.FetchRead(read)
		require.Nil(t, err)
		seen[address(g.Data)] = true
		g.Release(f.dict)
		_, err = f.ReleaseRead(read)
		require.Nil(t, err)
		assert.LessOrEqual(t, f.Counters().BytesColumns, 2*size)
	}
	assert.Len(t, seen, 2)
}

func itoa(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return itoa(i/10) + string(rune('0'+i%10))
}

// Rewriting one unsealed ordinal for ever does not pile up buffers.
func TestRewritingAnUnsealedOrdinal(t *testing.T) {
	f := newFixture(t)
	all, part := f.query("/a", "/b", "/c"), f.query("/c", "/a")
	for i := range 1000 {
		f.write(all, "p", 3, many(float32(i), 1, 2)...)
		f.write(part, "p", 3, many(float32(i), 7)...)
	}
	assert.Less(t, f.Counters().BytesColumns, uint64(64<<10))
	f.seal(3)
	assert.Equal(t, many(7, 1, 999), f.read(all, "p", 3))
}
