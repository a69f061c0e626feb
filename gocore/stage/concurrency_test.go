package stage

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// Writers of large and small columns, maps, readers and a floor that moves on, all at once: no operation is lost, and no
// reader sees a row of another tick.
func TestEverythingAtOnce(t *testing.T) {
	f := newFixture(t)
	const n, ticks = 30_000, 40 // 360 KB a column: copied without the mutex
	paths := make([]string, n)
	for i := range paths {
		paths[i] = "/p" + itoa(i)
	}
	all, part := f.query(paths...), f.query(paths[10], paths[3])
	names := []string{"a", "b", "mapped", "p"}
	tokens := make([]pathdict.Token, len(names))
	for i, name := range names {
		tokens[i] = f.token(name)
	}
	var workers sync.WaitGroup
	done := make(chan struct{})
	workers.Go(func() {
		defer close(done)
		for tick := uint64(1); tick <= ticks; tick++ {
			var tickers sync.WaitGroup
			for _, name := range names[:2] {
				tickers.Go(func() {
					values := make([]float3, n)
					for i := range values {
						values[i] = one(float32(tick))
					}
					assert.Nil(t, f.tryWrite(all, name, tick, payload(float3Type, values)))
					assert.Nil(t, f.tryWrite(part, name, tick, payload(float3Type, values[:2])))
				})
			}
			tickers.Go(func() {
				m := f.mapFloat3(all, "mapped", tick, Current)
				values := m.values()
				for i := range values {
					values[i] = one(float32(tick))
				}
				assert.Nil(t, m.unmap())
			})
			tickers.Go(func() {
				id, groups := f.split(all, MapDesc{Initial: Discard}, n/4, tick)
				var fillers sync.WaitGroup
				for _, g := range groups {
					fillers.Go(func() {
						values := g.values()
						for i := range values {
							values[i] = one(float32(tick))
						}
						assert.Nil(t, f.commitGroup(id, g))
					})
				}
				fillers.Wait()
				assert.Nil(t, f.finish(id))
			})
			tickers.Wait()
			f.seal(tick)
		}
	})
	for range 2 {
		workers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					f.checkOneTick(all, tokens)
				}
			}
		})
	}
	workers.Wait()
	assert.Equal(t, one(ticks), f.read(all, "a", ticks)[n-1])
}

// checkOneTick reads several attributes in one call: every row of every column belongs to one tick.
func (f *fixture) checkOneTick(q QueryID, tokens []pathdict.Token) {
	read, _, err := f.Read(q, tokens, Range{End: 0})
	require.Nil(f, err)
	seen := map[float3]bool{}
	for {
		g, err := f.FetchRead(read)
		require.Nil(f, err)
		if g == nil {
			break
		}
		values := rows[float3](g)
		for _, v := range values {
			seen[v] = true
		}
		g.Release(f.dict)
	}
	_, err = f.ReleaseRead(read)
	require.Nil(f, err)
	assert.LessOrEqual(f, len(seen), 1, "a torn tick")
}
