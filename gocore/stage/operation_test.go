package stage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A failure stays a failure when a client that never releases piles up others; only its text is let go.
func TestOldFailuresStayFailures(t *testing.T) {
	f := newFixture(t)
	var failed []uint64
	f.mu.Lock()
	for range maxTexts + 10 {
		failed = append(failed, f.fail(errorf(WriteFloorViolation, "why")))
	}
	f.mu.Unlock()
	oldest := f.OpError(failed[0])
	require.Error(t, oldest)
	assert.Equal(t, WriteFloorViolation, CodeOf(oldest))
	assert.Contains(t, oldest.Error(), "only the newest 4096 failures keep their texts, release operations sooner")
	second := f.OpError(failed[1])
	assert.Same(t, oldest, second, "a failure without a text costs no text")
	newest := f.OpError(failed[len(failed)-1])
	require.Error(t, newest)
	assert.Equal(t, "why", newest.Error())
	f.ForgetOp(failed[0])
	assert.NoError(t, f.OpError(failed[0]))
}

// A client that releases what failed leaves nothing behind.
func TestReleasedFailuresGo(t *testing.T) {
	f := newFixture(t)
	for range 10_000 {
		f.mu.Lock()
		op := f.fail(errorf(WriteFloorViolation, "why"))
		f.mu.Unlock()
		f.ForgetOp(op)
	}
	assert.LessOrEqual(t, len(f.failed.order), minForgotten+1)
	f.mu.Lock()
	kept := f.fail(errorf(WriteFloorViolation, "kept"))
	f.mu.Unlock()
	f.ForgetOp(kept + 1)
	assert.EqualError(t, f.OpError(kept), "kept")
}

// A handle of one stage means nothing to another.
func TestHandlesBelongToTheirStage(t *testing.T) {
	a, b := newFixture(t), newFixture(t)
	theirs := b.query("/b")
	a.query("/a")
	err := a.tryWrite(theirs, "x", 1, scalars(1))
	require.NotNil(t, err)
	assert.Equal(t, InvalidHandle, CodeOf(err))
}

func TestLongNamesAreCutInTexts(t *testing.T) {
	f := newFixture(t)
	err := f.tryWrite(f.query("/a"), strings.Repeat("x", MaxName), 1, scalars(1, 2))
	require.NotNil(t, err)
	assert.Less(t, len(err.Error()), 1000)
	err = f.tryWrite(f.query("/a"), strings.Repeat("x", MaxName+1), 1, scalars(1))
	require.NotNil(t, err)
	assert.Equal(t, "attribute[0]: the name has 4097 bytes, expected at most 4096", err.Error())
}
