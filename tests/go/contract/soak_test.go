package contract

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// collected runs the collector until no block is alive, those of earlier tests included, or fails.
func collected(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		runtime.GC()
		return memory.Counters().Blocks() == 0
	}, 30*time.Second, time.Millisecond, "what was dropped is given back")
}

// Nothing has to be released: what is dropped goes with the collector, dictionaries and stages included.
func TestTheCollectorGivesBack(t *testing.T) {
	collected(t)
	func() {
		s := ovstage.New("dropped")
		prims, err := s.Prims("/A", "/B")
		require.NoError(t, err)
		require.NoError(t, ovstage.Write(prims, "p", 1, []int32{1, 2}))
		require.NoError(t, s.Seal(1))
		column, err := ovstage.Read[int32](prims, "p")
		require.NoError(t, err)
		require.Equal(t, 2, column.Len())
		require.Positive(t, memory.Counters().Blocks())
	}()
	collected(t)
}

// A dropped list of prims ends its query, while its stage goes on.
func TestDroppedPrimsEndTheirQuery(t *testing.T) {
	s := ovstage.New(t.Name())
	defer s.Close()
	for range 100 {
		_, err := s.Prims("/A")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return s.Engine().Counters().LiveQueries == 0
	}, 30*time.Second, time.Millisecond)
}

// soakTime is a second, or as long as OVSTAGE_SOAK says, such as 10m.
func soakTime(t *testing.T) time.Duration {
	if text := os.Getenv("OVSTAGE_SOAK"); text != "" {
		length, err := time.ParseDuration(text)
		require.NoError(t, err)
		return length
	}
	return time.Second
}

// Writers, a sealer and readers for a while. Each write gives all rows one number, so that a torn snapshot shows; afterwards
// the counters are back where they began.
func TestSoak(t *testing.T) {
	collected(t)
	s := ovstage.New("soak")
	paths := make([]string, 500)
	for i := range paths {
		paths[i] = "/prim" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	end := time.Now().Add(soakTime(t))
	names := []string{"written", "mapped"}
	var work sync.WaitGroup
	var ticks, reads [2]int
	for k, name := range names {
		work.Go(func() { // each attribute has one writer, which seals it by itself
			prims, err := s.Prims(paths...)
			assert.NoError(t, err)
			token, err := s.Names().Token(name)
			assert.NoError(t, err)
			for tick := uint64(1); tick == 1 || time.Now().Before(end); tick++ {
				rows := make([]uint64, len(paths))
				fill := func(rows []uint64) error {
					for i := range rows {
						rows[i] = tick
					}
					return nil
				}
				if name == "mapped" {
					err = ovstage.Map(prims, name, tick, fill)
				} else if err = fill(rows); err == nil {
					err = ovstage.Write(prims, name, tick, rows)
				}
				assert.NoError(t, err)
				_, err = s.Engine().AdvanceFloor(tick, stage.Include, []pathdict.Token{token})
				assert.NoError(t, err)
				ticks[k]++
			}
		})
		work.Go(func() {
			prims, err := s.Prims(paths...)
			assert.NoError(t, err)
			defer func() { assert.NoError(t, prims.Release()) }()
			for last := uint64(0); reads[k] == 0 || time.Now().Before(end); reads[k]++ {
				column, err := ovstage.Read[uint64](prims, name)
				if !assert.NoError(t, err) {
					return
				}
				column.View(func(first int, rows []uint64) {
					for _, row := range rows {
						if row != rows[0] || row < last {
							t.Errorf("a snapshot of %s has %d beside %d after %d", name, row, rows[0], last)
							return
						}
					}
					last = rows[0]
				})
				if reads[k]%2 == 0 {
					column.Release() // the others go with the collector
				}
			}
		})
	}
	work.Wait()
	t.Logf("%d and %d ticks, %d and %d reads", ticks[0], ticks[1], reads[0], reads[1])
	for k := range names {
		assert.Positive(t, ticks[k])
		assert.Positive(t, reads[k])
	}
	s.Close()
	s = nil
	collected(t)
}
