// Package gorgonia tries the fake driver through gorgonia.org/cu, Go's binding of the driver API, as a second opinion on
// what a CUDA client expects of it.
package gorgonia

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

// context has the primary context of device 0 in the thread of the test.
func context(t *testing.T) {
	t.Helper()
	device, err := cu.GetDevice(0)
	require.NoError(t, err)
	primary, err := device.RetainPrimaryCtx()
	require.NoError(t, err)
	require.NoError(t, cu.PushCurrentCtx(primary))
	t.Cleanup(func() {
		_, err := cu.PopCurrentCtx()
		require.NoError(t, err)
		require.NoError(t, device.ReleasePrimaryCtx())
	})
}

func TestDevices(t *testing.T) {
	count, err := cu.NumDevices()
	require.NoError(t, err)
	require.Equal(t, 1, count)
	_, err = cu.GetDevice(count)
	require.Error(t, err)
}

func TestBytesGoUpAndComeBack(t *testing.T) {
	context(t)
	memory, err := cu.MemAlloc(64)
	require.NoError(t, err)
	in, out := make([]byte, 64), make([]byte, 64)
	for i := range in {
		in[i] = byte(i)
	}
	stream, err := cu.MakeStream(cu.NonBlocking)
	require.NoError(t, err)
	require.NoError(t, cu.MemcpyHtoDAsync(memory, unsafe.Pointer(&in[0]), 64, stream))
	event, err := cu.MakeEvent(cu.DisableTiming)
	require.NoError(t, err)
	require.NoError(t, event.Record(stream))
	require.NoError(t, event.Synchronize())
	require.NoError(t, cu.MemcpyDtoH(unsafe.Pointer(&out[0]), memory, 64))
	require.Equal(t, in, out)
	require.NoError(t, cu.MemFree(memory))
	require.Error(t, cu.MemFree(memory), "it is free already")
}

func TestStreamsWaitForEvents(t *testing.T) {
	context(t)
	memory, err := cu.MemAlloc(64)
	require.NoError(t, err)
	one, err := cu.MakeStream(cu.NonBlocking)
	require.NoError(t, err)
	two, err := cu.MakeStream(cu.NonBlocking)
	require.NoError(t, err)
	event, err := cu.MakeEvent(cu.DisableTiming)
	require.NoError(t, err)
	require.NoError(t, cu.MemsetD8Async(memory, 1, 64, one))
	require.NoError(t, event.Record(one))
	require.NoError(t, two.Wait(event, 0))
	require.NoError(t, cu.MemsetD8Async(memory, 2, 64, two))
	require.NoError(t, two.Synchronize())
	out := make([]byte, 64)
	require.NoError(t, cu.MemcpyDtoH(unsafe.Pointer(&out[0]), memory, 64))
	require.Equal(t, byte(2), out[63])
	require.NoError(t, cu.MemFree(memory))
}
