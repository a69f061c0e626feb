package pathdict

import (
	"math/bits"
	"slices"
)

// holes are bytes of chunks that are free although there are texts behind them, the room for a NUL included. They lie in
// classes by size, so that one that is large enough is found without a search: class c has those of 1<<c to 1<<(c+1)-1 bytes.
type holes struct {
	classes [lengthBits][]span
	filled  uint32 // bit c: class c has holes
}

// add takes in a hole. What is too small for a text, or begins where no span reaches, is lost until the dictionary ends.
func (h *holes) add(chunk, offset, size int) {
	size = min(size, MaxToken)
	if size < 2 || offset >= 1<<offsetBits {
		return
	}
	class := bits.Len(uint(size)) - 1
	h.classes[class] = append(h.classes[class], newSpan(chunk, offset, size))
	h.filled |= 1 << class
}

// take cuts size bytes off the front of a hole.
func (h *holes) take(size int) (span, bool) {
	if h.filled == 0 || size > MaxToken {
		return 0, false
	}
	class := bits.Len(uint(size)) - 1
	if !h.fits(class, size) { // any hole of a higher class does
		higher := h.filled &^ (2<<class - 1)
		if higher == 0 {
			return 0, false
		}
		class = bits.TrailingZeros32(higher)
	}
	last := len(h.classes[class]) - 1
	hole := h.classes[class][last]
	if h.classes[class] = h.classes[class][:last]; last == 0 {
		h.filled &^= 1 << class
	}
	h.add(hole.chunk(), hole.offset()+size, hole.length()-size)
	return hole, true
}

// fits reports whether the last hole of a class is large enough.
func (h *holes) fits(class, size int) bool {
	last := len(h.classes[class]) - 1
	return last >= 0 && h.classes[class][last].length() >= size
}

// join makes one hole of those that touch.
func (h *holes) join() {
	var all []span
	for _, class := range h.classes {
		all = append(all, class...)
	}
	slices.Sort(all) // by chunk, then by offset
	*h = holes{}
	for i := 0; i < len(all); {
		chunk, offset, size := all[i].chunk(), all[i].offset(), all[i].length()
		for i++; i < len(all) && all[i].chunk() == chunk && all[i].offset() == offset+size && size+all[i].length() <= MaxToken; i++ {
			size += all[i].length()
		}
		h.add(chunk, offset, size)
	}
}
