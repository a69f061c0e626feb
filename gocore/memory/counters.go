package memory

/*
#cgo noescape ov_memory_counters
#cgo nocallback ov_memory_counters
#include "ov_block.h"
*/
import "C"

import "sync/atomic"

// Stats are process-wide counters. Each is exact; together they may be torn by other threads at work.
type Stats struct {
	LiveBytes    [purposes]int64 // sizes of the blocks in use, by Purpose
	LiveBlocks   [purposes]int64 // blocks in use, by Purpose
	PooledBytes  int64           // capacities of the free blocks kept for the next allocation
	PooledBlocks int64           // those blocks
	DetachMoves  int64           // detaches that moved pages
	DetachCopies int64           // detaches that copied
	BytesCopied  int64           // payload bytes copied by detaches and reported through Copied
}

// Bytes returns the live bytes of all purposes.
func (s Stats) Bytes() int64 { return sum(s.LiveBytes) }

// Blocks returns the live blocks of all purposes.
func (s Stats) Blocks() int64 { return sum(s.LiveBlocks) }

func sum(byPurpose [purposes]int64) (total int64) {
	for _, n := range byPurpose {
		total += n
	}
	return total
}

// Counters returns the counters as they are now.
func Counters() Stats {
	var c C.ov_memory_counters_t
	C.ov_memory_counters(&c)
	s := Stats{
		PooledBytes:  int64(c.pooled_bytes),
		PooledBlocks: int64(c.pooled_blocks),
		DetachMoves:  int64(c.detach_moves),
		DetachCopies: int64(c.detach_copies),
		BytesCopied:  int64(c.bytes_copied),
	}
	for i := range purposes {
		s.LiveBytes[i] = int64(c.live_bytes[i])
		s.LiveBlocks[i] = int64(c.live_blocks[i])
	}
	return s
}

// Copied counts n payload bytes that a caller has copied. It is cheap enough for every write: one atomic add, no call.
func Copied(n int) { atomic.AddInt64((*int64)(&C.ov_memory_totals.bytes_copied), int64(n)) }

// Trim gives all pooled blocks back to the system.
func Trim() { C.ov_memory_trim() }
