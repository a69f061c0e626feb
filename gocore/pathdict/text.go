package pathdict

import (
	"sync/atomic"
	"unsafe"

	"ovstage/gocore/memory"
)

// chunkSize is the size of the pieces that memory for text is taken in. Pages that no text reached cost nothing.
const chunkSize = 1 << 20

// span says where the bytes of a token lie.
type span struct{ chunk, offset, length uint32 }

// text stores non-empty strings in C memory, each followed by a NUL. They never move and are freed all at once. There is one
// writer, under the dictionary's lock; readers need no lock, because a span is published after its bytes.
type text struct {
	chunks atomic.Pointer[[][]byte] // the readers' view of blocks
	blocks []memory.Block
	free   []byte // the rest of the last chunk
	used   int    // bytes of the last chunk
	size   int64
}

// at returns a view of a stored string.
func (t *text) at(s span) string {
	return unsafe.String(&(*t.chunks.Load())[s.chunk][s.offset], s.length)
}

// add stores s and a NUL. A string that does not fit the last chunk starts a new one, made to measure when it is long.
func (t *text) add(s string) (span, error) {
	if len(s)+1 > len(t.free) {
		if err := t.grow(max(chunkSize, len(s)+1)); err != nil {
			return span{}, err
		}
	}
	at := span{uint32(len(t.blocks) - 1), uint32(t.used), uint32(len(s))}
	end := copy(t.free, s)
	t.free[end] = 0
	t.free, t.used = t.free[end+1:], t.used+end+1
	return at, nil
}

func (t *text) grow(size int) error {
	block, err := memory.Alloc(size, memory.Strings)
	if err != nil {
		return err
	}
	t.blocks = append(t.blocks, block)
	chunks := make([][]byte, len(t.blocks))
	for i, block := range t.blocks {
		chunks[i] = block.Bytes()
	}
	t.chunks.Store(&chunks)
	t.free, t.used, t.size = block.Bytes()[:size], 0, t.size+int64(block.Capacity())
	return nil
}

func (t *text) close() {
	t.chunks.Store(nil)
	for _, block := range t.blocks {
		block.Release()
	}
	t.blocks, t.free, t.used, t.size = nil, nil, 0, 0
}

func (t *text) bytes() int64 { return t.size }
