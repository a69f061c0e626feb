package main

/*
#include "ring.h"
*/
import "C"

import (
	"sync/atomic"

	"ovstage.dev/ovstage/gocore/memory"
)

// count adds what an instance knows about itself.
func (i *instance) count(to *C.ovstage_go_counters_t) {
	s := i.stage.Counters()
	to.live_queries += C.uint64_t(s.LiveQueries)
	to.live_reads += C.uint64_t(s.LiveReads)
	to.live_maps += C.uint64_t(s.LiveMaps)
	to.bytes_columns += C.uint64_t(s.BytesColumns)
	to.rows_resolved += C.uint64_t(s.RowsResolved)
	to.maps_adopted += C.uint64_t(s.MapsAdopted)
	i.mu.Lock()
	to.live_groups += C.uint64_t(len(i.groups))
	i.mu.Unlock()
}

// countMemory sets what is known for the process only, since all instances share one pool of buffers.
func countMemory(to *C.ovstage_go_counters_t) memory.Stats {
	m := memory.Counters()
	to.bytes_pooled = C.uint64_t(m.PooledBytes)
	to.bytes_copied = C.uint64_t(m.BytesCopied)
	to.live_blocks = C.uint64_t(m.Blocks())
	to.detach_moves = C.uint64_t(m.DetachMoves)
	to.detach_copies = C.uint64_t(m.DetachCopies)
	return m
}

//export ovgoCounters
func ovgoCounters(c *C.ovstage_context_t, out *C.ovstage_go_counters_t) (status C.ovstage_api_status_t) {
	defer guard(c, "counters", &status)
	i := of(c)
	i.count(out)
	countMemory(out)
	out.live_exports = C.uint64_t(atomic.LoadInt64((*int64)(&c.live_exports)))
	out.refused_unasked = C.ov_unasked_count_of(c)
	return C.OVSTAGE_OK
}

//export ovgoProcessCounters
func ovgoProcessCounters(out *C.ovstage_go_counters_t) {
	var ignored C.ovstage_api_status_t
	defer guardProcess("process_counters", &ignored)
	panicIfTold()
	if table := instances.Load(); table != nil {
		for _, i := range *table {
			if i != nil {
				i.count(out)
			}
		}
	}
	m := countMemory(out)
	out.bytes_columns = C.uint64_t(m.LiveBytes[memory.Columns] + m.LiveBytes[memory.Maps])
	out.live_exports = C.uint64_t(C.ov_export_count())
	out.refused_unasked = C.ov_unasked_count()
}
