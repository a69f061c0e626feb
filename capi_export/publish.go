package main

/*
#include "ring.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"ovstage.dev/ovstage/gocore/stage"
)

//export ovgoPublish
func ovgoPublish(
	c *C.ovstage_context_t, deletes *C.ovstage_go_delete_t, deleteCount C.size_t, written *C.ov_batch, writtenCount C.size_t,
	managed *C.ov_managed_list, ordinal C.ovstage_ordinal_t,
) (result C.ovstage_enqueue_result_t) {
	b := batches.Get().(*batch)
	defer func() { b.end(result.status == C.OVSTAGE_OK) }()
	defer guard(c, "publish", &result.status)
	i := of(c)
	deletions, err := b.deletions(i, unsafe.Slice(deletes, int(deleteCount)))
	if err != nil {
		return enqueued(0, err)
	}
	b.managed = managed
	publication, err := b.publication(i, unsafe.Slice(written, int(writtenCount)))
	if err != nil {
		return enqueued(0, err)
	}
	return enqueued(i.stage.Publish(deletions, publication, uint64(ordinal)))
}

func (b *batch) deletions(i *instance, entries []C.ovstage_go_delete_t) ([]stage.Deletion, error) {
	deletions := make([]stage.Deletion, len(entries))
	for k, d := range entries {
		names, err := b.tried.attributes(i, fmt.Sprintf("deletes[%d].attributes", k), unsafe.Slice(d.attributes, int(d.attribute_count)))
		if err != nil {
			return nil, err
		}
		deletions[k] = stage.Deletion{Query: stage.QueryID(d.query), Attributes: names}
	}
	return deletions, nil
}

// publication describes the writes of all batches one after the other, and hands each batch its own.
func (b *batch) publication(i *instance, entries []C.ov_batch) ([]stage.Batch, error) {
	for k, e := range entries {
		if err := b.translate(i, unsafe.Slice(e.writes, int(e.count)), true); err != nil {
			return nil, refuse(stage.CodeOf(err), "batches[%d]: %s", k, err)
		}
	}
	writes, publication := b.cut(), make([]stage.Batch, len(entries))
	for k, e := range entries {
		n := int(e.count)
		publication[k], writes = stage.Batch{Query: stage.QueryID(e.query), Writes: writes[:n]}, writes[n:]
	}
	return publication, nil
}
