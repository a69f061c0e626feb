package memory

import (
	"bytes"
	"errors"
	"math"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// sizes lie on both sides of every border: the smallest class, own mappings, moved pages, huge pages.
var sizes = []int{
	0, 1, 255, 256, 257, 5000, 64*kib - 1, 64 * kib, 64*kib + 1, 100 * kib, mib - 1, mib, mib + 1, 4*mib - 1, 4 * mib, 5*mib + 3, 70 * mib,
}

// guard trims the pool, so that no other test's blocks are recycled, and checks at the end that nothing stayed alive.
func guard(t *testing.T) {
	t.Helper()
	Trim()
	before := Counters()
	t.Cleanup(func() {
		after := Counters()
		assert.Equal(t, before.LiveBytes, after.LiveBytes)
		assert.Equal(t, before.LiveBlocks, after.LiveBlocks)
	})
}

func alloc(t *testing.T, size int) Block {
	t.Helper()
	b, err := Alloc(size, Columns)
	require.NoError(t, err)
	return b
}

// fill writes a pattern that differs from page to page and from seed to seed.
func fill(b []byte, seed byte) {
	const period = 251
	for i := range min(len(b), period) {
		b[i] = byte(i) + seed
	}
	for done := period; done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
}

// holds reports whether b is as fill left it; a mismatch in megabytes is not worth printing.
func holds(b []byte, seed byte) bool {
	want := make([]byte, len(b))
	fill(want, seed)
	return bytes.Equal(want, b)
}

func allZero(b []byte) bool { return bytes.Equal(b, make([]byte, len(b))) }

func TestBlocksAreAlignedAndRoomy(t *testing.T) {
	guard(t)
	for _, size := range sizes {
		b := alloc(t, size)
		require.True(t, b.Valid())
		require.NotNil(t, b.Pointer(), "also for size 0")
		alignment := uintptr(256)
		if size >= 4*mib {
			alignment = 2 * mib
		}
		assert.Zero(t, uintptr(b.Pointer())%alignment, "size %d", size)
		assert.Equal(t, size, b.Size())
		assert.GreaterOrEqual(t, b.Capacity(), max(size, 256))
		slack := size / 4
		if size > 3*mib {
			slack += 2 * mib
		}
		assert.LessOrEqual(t, b.Capacity(), max(256, size+slack), "size %d", size)
		assert.Len(t, b.Bytes(), b.Capacity())
		assert.Equal(t, 1, b.Refs())
		fill(b.Bytes(), 1)
		assert.True(t, holds(b.Bytes(), 1))
		b.Release()
	}
}

// Every size up to a few pages, so that no class is too small for what it takes.
func TestEverySmallSizeFits(t *testing.T) {
	guard(t)
	for size := range 9000 {
		b := alloc(t, size)
		require.GreaterOrEqual(t, b.Capacity(), size)
		require.LessOrEqual(t, b.Capacity(), max(256, size+size/4))
		b.Release()
	}
}

func TestAReleasedBlockIsRecycled(t *testing.T) {
	guard(t)
	for _, size := range sizes {
		b := alloc(t, size)
		address, capacity := b.Pointer(), b.Capacity()
		b.Release()
		again, err := Alloc(capacity, Maps)
		require.NoError(t, err)
		assert.Equal(t, address, again.Pointer(), "size %d", size)
		assert.Equal(t, 1, again.Refs())
		assert.Equal(t, capacity, again.Size())
		again.Release()
	}
}

func TestTheNewestFreeBlockComesFirst(t *testing.T) {
	guard(t)
	a, b := alloc(t, 1000), alloc(t, 1000)
	first, second := a.Pointer(), b.Pointer()
	require.NotEqual(t, first, second)
	a.Release()
	b.Release()
	c, d := alloc(t, 1000), alloc(t, 1000)
	assert.Equal(t, second, c.Pointer())
	assert.Equal(t, first, d.Pointer())
	c.Release()
	d.Release()
}

func TestZeroedBlocksAreZero(t *testing.T) {
	guard(t)
	for _, size := range sizes {
		for range 2 { // a fresh block, then a dirty recycled one
			b, err := AllocZeroed(size, Maps)
			require.NoError(t, err)
			assert.True(t, allZero(b.Bytes()), "size %d", size)
			fill(b.Bytes(), 0xff)
			b.Release()
			dirty := alloc(t, size)
			fill(dirty.Bytes(), 0x55)
			dirty.Release()
		}
	}
}

func TestThePoolIsBounded(t *testing.T) {
	guard(t)
	var held []Block
	for range 4 {
		held = append(held, alloc(t, 64*mib))
	}
	for _, b := range held {
		b.Release()
	}
	assert.EqualValues(t, 2, Counters().PooledBlocks, "a class of large blocks keeps two")

	held = held[:0]
	for range 70 {
		held = append(held, alloc(t, 5*mib))
	}
	oldest := held[0].Pointer()
	for _, b := range held {
		b.Release()
	}
	assert.LessOrEqual(t, Counters().PooledBytes, int64(256*mib))
	assert.Greater(t, Counters().PooledBytes, int64(240*mib))
	held = held[:0]
	for range 42 {
		held = append(held, alloc(t, 5*mib))
		assert.NotEqual(t, oldest, held[len(held)-1].Pointer(), "the oldest made room")
	}
	for _, b := range held {
		b.Release()
	}

	before := Counters()
	alloc(t, 300*mib).Release() // larger than the whole pool: straight back to the system
	assert.Equal(t, before, Counters())
}

func TestTrimEmptiesThePool(t *testing.T) {
	guard(t)
	for _, size := range sizes {
		alloc(t, size).Release()
	}
	assert.Positive(t, Counters().PooledBytes)
	Trim()
	assert.Zero(t, Counters().PooledBytes)
	assert.Zero(t, Counters().PooledBlocks)
	alloc(t, 5*mib).Release() // and it goes on working
	assert.Positive(t, Counters().PooledBytes)
	Trim()
}

func TestCountersTellPurposes(t *testing.T) {
	guard(t)
	before := Counters()
	a, err := Alloc(1000, Indices)
	require.NoError(t, err)
	b, err := AllocZeroed(5*mib, Maps)
	require.NoError(t, err)
	now := Counters()
	assert.Equal(t, before.LiveBytes[Indices]+1000, now.LiveBytes[Indices])
	assert.Equal(t, before.LiveBytes[Maps]+5*mib, now.LiveBytes[Maps])
	assert.Equal(t, before.LiveBlocks[Indices]+1, now.LiveBlocks[Indices])
	assert.Equal(t, before.LiveBlocks[Columns], now.LiveBlocks[Columns])
	assert.Equal(t, before.Bytes()+1000+5*mib, now.Bytes())
	assert.Equal(t, before.Blocks()+2, now.Blocks())
	b.Retain()
	b.Release()
	assert.Equal(t, now, Counters(), "a reference is no block")
	a.Release()
	b.Release()

	Copied(1234)
	assert.Equal(t, now.BytesCopied+1234, Counters().BytesCopied)
}

func TestReferencesAcrossGoroutines(t *testing.T) {
	guard(t)
	for _, size := range []int{100, 100 * kib} {
		b := alloc(t, size)
		address := b.Pointer()
		var group sync.WaitGroup
		for range 8 {
			mine := b.Retain()
			group.Go(func() {
				for range 10_000 {
					mine.Retain()
					mine.Release()
				}
				mine.Release()
			})
		}
		b.Release() // some goroutine, or this call, is the last
		group.Wait()
		again := alloc(t, size)
		assert.Equal(t, address, again.Pointer(), "it was given back exactly once")
		other := alloc(t, size)
		assert.NotEqual(t, address, other.Pointer())
		again.Release()
		other.Release()
	}
}

func TestThePoolIsSafeForGoroutines(t *testing.T) {
	guard(t)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 500 {
				b, err := Alloc([]int{100, 5000, 100 * kib}[i%3], Columns)
				if !assert.NoError(t, err) {
					return
				}
				words := b.Uint32s(25)
				for j := range words {
					words[j] = uint32(worker)
				}
				for _, word := range words {
					if word != uint32(worker) {
						t.Error("two owners of one block")
						return
					}
				}
				b.Release()
				if i%100 == 0 {
					Trim()
				}
			}
		})
	}
	group.Wait()
}

func TestRoundTripThroughC(t *testing.T) {
	guard(t)
	b := alloc(t, 10)
	assert.Equal(t, b, FromC(b.C()))
	assert.Equal(t, 1, b.Refs(), "crossing adds no reference")
	assert.True(t, b == b.Retain())
	assert.Equal(t, 2, b.Refs())
	b.Release()
	b.Release()
	assert.False(t, FromC(nil).Valid())
}

func TestUint32s(t *testing.T) {
	guard(t)
	b := alloc(t, 12)
	words := b.Uint32s(3)
	words[2] = 7
	assert.EqualValues(t, 7, *(*uint32)(unsafe.Add(b.Pointer(), 8)))
	assert.PanicsWithValue(t, "memory: 65 32-bit words do not fit a block of 256 bytes", func() { b.Uint32s(65) })
	assert.Panics(t, func() { b.Uint32s(-1) })
	b.Release()
}

func TestNoBlock(t *testing.T) {
	var none Block
	assert.False(t, none.Valid())
	assert.Equal(t, none, none.Retain())
	none.Release()
	assert.Zero(t, none.Refs())
	assert.Zero(t, none.Size())
	assert.Zero(t, none.Capacity())
	assert.Nil(t, none.Bytes())
	assert.Nil(t, none.Pointer())
	assert.Nil(t, none.C())
	assert.Empty(t, none.Uint32s(0))
	detached, err := none.Detach()
	assert.NoError(t, err)
	assert.False(t, detached.Valid())
}

func TestOutOfMemoryIsAnError(t *testing.T) {
	guard(t)
	for _, size := range []int{math.MaxInt, math.MaxInt - 4095, 1 << 60, Largest + 1, -1, math.MinInt} {
		for _, allocate := range []func(int, Purpose) (Block, error){Alloc, AllocZeroed} {
			b, err := allocate(size, Indices)
			assert.False(t, b.Valid())
			var outOfMemory *OutOfMemory
			require.True(t, errors.As(err, &outOfMemory), "size %d: %v", size, err)
			assert.Equal(t, OutOfMemory{size, Indices}, *outOfMemory)
		}
	}
	_, err := Alloc(1<<60, Indices)
	assert.EqualError(t, err, "out of memory: 1152921504606846976 bytes for index maps could not be allocated; "+
		"release groups, views and maps that are no longer needed, or use fewer rows")
}

func TestReleasingTooOftenPanics(t *testing.T) {
	guard(t)
	b := alloc(t, 300)
	address := b.Pointer()
	b.Release()
	assert.PanicsWithValue(t, "memory: a block of 300 bytes for columns was released more often than retained", b.Release)
	again, other := alloc(t, 300), alloc(t, 300)
	assert.Equal(t, address, again.Pointer(), "and it is in the pool once")
	assert.NotEqual(t, address, other.Pointer())
	again.Release()
	other.Release()
}

func TestPurposeNames(t *testing.T) {
	names := map[string]bool{}
	for p := range Purpose(purposes) {
		assert.NotContains(t, p.String(), "purpose")
		names[p.String()] = true
	}
	assert.Len(t, names, int(purposes))
	assert.Equal(t, "purpose 99", Purpose(99).String())
	_, err := Alloc(1, Purpose(99))
	assert.Error(t, err)
}
