package pathdict

import (
	"sync/atomic"
	"unsafe"

	"ovstage.dev/ovstage/gocore/memory"
)

// chunkSize is the size of the pieces that memory for text is taken in. Pages that no text reached cost nothing.
const chunkSize = 1 << 20

// span says where the bytes of a token lie, in one word, so that it can be exchanged while others read: chunk, offset and
// length, of 20, 20 and 24 bits. 0 is that of a token which was withdrawn.
type span uint64

const (
	offsetBits = 20
	lengthBits = 24

	// MaxToken is the largest number of bytes of a token.
	MaxToken = 1<<lengthBits - 1
)

func newSpan(chunk, offset, length int) span {
	return span(chunk<<(offsetBits+lengthBits) | offset<<lengthBits | length)
}

func (s span) chunk() int  { return int(s >> (offsetBits + lengthBits)) }
func (s span) offset() int { return int(s>>lengthBits) & (1<<offsetBits - 1) }
func (s span) length() int { return int(s) & MaxToken }

// text stores non-empty strings in C memory, each followed by a NUL. They never move and are freed all at once. There is one
// writer, under the dictionary's lock; readers need no lock, because a span is revealed after its bytes.
type text struct {
	chunks atomic.Pointer[[][]byte] // the readers' view of blocks
	blocks []memory.Block
	free   []byte // the rest of the last chunk
	used   int    // bytes of the last chunk
	size   int64
	holes  holes
}

// at returns a view of a stored string.
func (t *text) at(s span) string {
	return unsafe.String(&(*t.chunks.Load())[s.chunk()][s.offset()], s.length())
}

// add stores s and a NUL. A string that does not fit the last chunk starts a new one, made to measure when it is long.
func (t *text) add(s string) (span, error) {
	if hole, found := t.holes.take(len(s) + 1); found {
		to := t.blocks[hole.chunk()].Bytes()[hole.offset():]
		to[copy(to, s)] = 0
		return newSpan(hole.chunk(), hole.offset(), len(s)), nil
	}
	if len(s)+1 > len(t.free) {
		if err := t.grow(max(chunkSize, len(s)+1)); err != nil {
			return 0, err
		}
	}
	at := newSpan(len(t.blocks)-1, t.used, len(s))
	end := copy(t.free, s)
	t.free[end] = 0
	t.free, t.used = t.free[end+1:], t.used+end+1
	return at, nil
}

// takeBack makes the bytes of a string room for others.
func (t *text) takeBack(s span) {
	size := s.length() + 1
	if s.chunk() == len(t.blocks)-1 && s.offset()+size == t.used {
		t.used -= size
		t.free = t.blocks[s.chunk()].Bytes()[t.used : t.used+size+len(t.free)]
		return
	}
	t.holes.add(s.chunk(), s.offset(), size)
}

func (t *text) grow(size int) error {
	block, err := memory.Alloc(size, memory.Strings)
	if err != nil {
		return err
	}
	if len(t.blocks) > 0 {
		t.holes.add(len(t.blocks)-1, t.used, len(t.free)) // what is left of the last chunk
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
	t.blocks, t.free, t.used, t.size, t.holes = nil, nil, 0, 0, holes{}
}

func (t *text) bytes() int64 { return t.size }
