//go:build invariants

package memory

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const useAfterRelease = "OVSTAGE_TEST_USE_AFTER_RELEASE"

// A view that outlives its reference is the fault that nothing else finds: the bytes are still there, until they are another
// block's. The child process does it.
func TestUseAfterReleaseEndsTheProcess(t *testing.T) {
	if os.Getenv(useAfterRelease) != "" {
		b, err := Alloc(1<<20, Columns)
		require.NoError(t, err)
		bytes := b.Bytes()
		bytes[100] = 1
		b.Release()
		t.Fatalf("read %d after the release", bytes[100])
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUseAfterReleaseEndsTheProcess$", "-test.timeout=60s")
	child.Env, child.WaitDelay = append(os.Environ(), useAfterRelease+"=1"), time.Second
	said, err := child.CombinedOutput()
	require.Error(t, err, "%s", said)
	assert.Contains(t, string(said), "unexpected fault address", "the read is what ends it")
	assert.NotContains(t, string(said), "after the release")
}

// Small blocks share their pages with others: their bytes say what they are.
func TestReleasedBytesAreFilled(t *testing.T) {
	b, err := Alloc(1000, Columns)
	require.NoError(t, err)
	bytes := b.Bytes()
	clear(bytes)
	b.Release()
	for i, value := range bytes {
		require.Equal(t, byte(0xCC), value, "byte %d", i)
	}
}

// What was protected is handed out again, and is zero where zeros were asked for.
func TestAProtectedBlockIsUsedAgain(t *testing.T) {
	for _, size := range []int{100, 1 << 20, 8 << 20} {
		b, err := Alloc(size, Columns)
		require.NoError(t, err)
		b.Bytes()[0] = 1
		b.Release()
		again, err := Alloc(size, Columns)
		require.NoError(t, err)
		again.Bytes()[size-1] = 1
		again.Release()
		zeroed, err := AllocZeroed(size, Columns)
		require.NoError(t, err)
		assert.Zero(t, zeroed.Bytes()[0])
		assert.Zero(t, zeroed.Bytes()[size-1])
		zeroed.Release()
	}
}
