package pathdict

import (
	"sync/atomic"
	"unsafe"

	"ovstage/gocore/memory"
)

// chunkSize is what text is taken from the system in. Pages that no text reached cost nothing.
const chunkSize = 1 << 20

// span says where the bytes of a token lie.
type span struct{ chunk, offset, length uint32 }

// text stores strings in C memory, each followed by a NUL. Strings never move and are freed all at once. One
// writer, under the dictionary's lock; readers need none, because a span is published after its bytes.
type text struct {
	chunks atomic.Pointer[[][]byte] // the readers' view of blocks
	blocks []memory.Block
	used   int // bytes of the last chunk
	size   int64
}

// at returns a view of a stored string.
func (t *text) at(s span) string {
	if s.length == 0 {
		return ""
	}
	return unsafe.String(&(*t.chunks.Load())[s.chunk][s.offset], s.length)
}

// add stores s and a NUL. A string that does not fit the last chunk starts a new one, made to measure when it is long.
func (t *text) add(s string) (span, error) {
	var chunks [][]byte
	if p := t.chunks.Load(); p != nil {
		chunks = *p
	}
	if len(chunks) == 0 || t.used+len(s)+1 > len(chunks[len(chunks)-1]) {
		block, err := memory.Alloc(max(chunkSize, len(s)+1), memory.Strings)
		if err != nil {
			return span{}, err
		}
		t.blocks = append(t.blocks, block)
		chunks = append(chunks, block.Bytes())
		t.chunks.Store(&chunks)
		t.used, t.size = 0, t.size+int64(block.Capacity())
	}
	last := len(chunks) - 1
	at := span{uint32(last), uint32(t.used), uint32(len(s))}
	copy(chunks[last][t.used:], s)
	chunks[last][t.used+len(s)] = 0
	t.used += len(s) + 1
	return at, nil
}

func (t *text) free() {
	t.chunks.Store(nil)
	for _, block := range t.blocks {
		block.Release()
	}
	t.blocks, t.used, t.size = nil, 0, 0
}

func (t *text) bytes() int64 { return t.size }
