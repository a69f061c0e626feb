package memory

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDetach(t *testing.T) {
	guard(t)
	for _, size := range sizes {
		before := Counters()
		b, err := Alloc(size, Maps)
		require.NoError(t, err)
		fill(b.Bytes(), 3)

		detached, err := b.Detach()
		require.NoError(t, err)
		assert.NotEqual(t, b, detached)
		assert.NotEqual(t, b.Pointer(), detached.Pointer())
		assert.Equal(t, size, detached.Size())
		assert.Equal(t, b.Capacity(), detached.Capacity())
		assert.Equal(t, 1, detached.Refs())
		assert.Equal(t, 1, b.Refs(), "the old block stays the caller's")
		assert.True(t, holds(detached.Bytes(), 3), "size %d", size)
		if size >= 4*mib {
			assert.Zero(t, uintptr(detached.Pointer())%(2*mib))
		}

		fill(b.Bytes(), 9) // a stale writer
		assert.True(t, holds(b.Bytes(), 9), "the old address stays writable, size %d", size)
		assert.True(t, holds(detached.Bytes(), 3), "and writes there do not reach the new block, size %d", size)
		fill(detached.Bytes(), 4)
		assert.True(t, holds(b.Bytes(), 9))

		after := Counters()
		assert.Equal(t, before.LiveBlocks[Maps]+2, after.LiveBlocks[Maps])
		if b.Capacity() >= mib {
			assert.Equal(t, before.DetachMoves+1, after.DetachMoves, "size %d", size)
			assert.Equal(t, before.DetachCopies, after.DetachCopies)
			assert.Equal(t, before.BytesCopied, after.BytesCopied)
		} else {
			assert.Equal(t, before.DetachMoves, after.DetachMoves)
			assert.Equal(t, before.DetachCopies+1, after.DetachCopies, "size %d", size)
			assert.Equal(t, before.BytesCopied+int64(size), after.BytesCopied)
		}

		// A detached block can be detached again, and outlives the old one.
		again, err := detached.Detach()
		require.NoError(t, err)
		b.Release()
		detached.Release()
		assert.True(t, holds(again.Bytes(), 4))
		again.Release()
	}
}

// A block whose pages were moved away has nothing warm to offer; the one that got them has.
func TestOnlyPagesAreRecycled(t *testing.T) {
	guard(t)
	b := alloc(t, 5*mib)
	fill(b.Bytes(), 1)
	detached, err := b.Detach()
	require.NoError(t, err)
	address := detached.Pointer()
	detached.Release()
	b.Release() // later than detached, and still not the next one to be handed out
	assert.EqualValues(t, 1, Counters().PooledBlocks)
	next := alloc(t, 5*mib)
	assert.Equal(t, address, next.Pointer())
	next.Release()
}

// Where the kernel refuses to move pages they are copied. A sealed mapping is one that it refuses; it stays in the process
// for good, which nothing here minds.
func TestDetachCopiesWhatCannotBeMoved(t *testing.T) {
	guard(t)
	b := alloc(t, 5*mib)
	fill(b.Bytes(), 1)
	const mseal = 462
	if _, _, errno := syscall.Syscall(mseal, uintptr(b.Pointer()), uintptr(b.Capacity()), 0); errno != 0 {
		b.Release()
		t.Skipf("this kernel cannot seal a mapping: %v", errno)
	}
	before := Counters()
	detached, err := b.Detach()
	require.NoError(t, err)
	assert.Equal(t, before.DetachCopies+1, Counters().DetachCopies)
	assert.Equal(t, before.DetachMoves, Counters().DetachMoves)
	assert.NotEqual(t, b.Pointer(), detached.Pointer())
	assert.True(t, holds(detached.Bytes(), 1))
	fill(b.Bytes(), 2)
	assert.True(t, holds(detached.Bytes(), 1))
	assert.True(t, holds(b.Bytes(), 2))
	b.Release()
	detached.Release()
	Trim()
}

// A view that is being written while its buffer is detached sees no fault, and what it writes afterwards stays with it.
func TestDetachUnderAWriter(t *testing.T) {
	guard(t)
	for range 20 {
		b, err := AllocZeroed(4*mib, Maps)
		require.NoError(t, err)
		words := b.Uint32s(mib)
		var stop atomic.Bool
		var group sync.WaitGroup
		group.Go(func() {
			for n := uint32(1); !stop.Load(); n++ {
				for i := 0; i < len(words); i += 1024 {
					atomic.StoreUint32(&words[i], n)
				}
			}
		})
		for atomic.LoadUint32(&words[0]) == 0 {
			runtime.Gosched()
		}
		detached, err := b.Detach()
		require.NoError(t, err)
		settled := bytes.Clone(detached.Bytes())
		for seen := atomic.LoadUint32(&words[0]); seen == atomic.LoadUint32(&words[0]); {
			runtime.Gosched() // until the writer has been round once more
		}
		assert.True(t, bytes.Equal(settled, detached.Bytes()), "the writer no longer reaches the bytes")
		stop.Store(true)
		group.Wait()
		b.Release()
		detached.Release()
	}
}

func TestAViewKeepsTheOldAddress(t *testing.T) {
	guard(t)
	b := alloc(t, 8*mib)
	view := (*uint64)(unsafe.Add(b.Pointer(), 4096))
	b.Retain()
	detached, err := b.Detach()
	require.NoError(t, err)
	b.Release()
	*view = 42 // the view's reference keeps the old address mapped
	assert.EqualValues(t, 42, *view)
	b.Release()
	detached.Release()
}
