package pathdict

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"unsafe"
)

// node is a path: the path above it and the token of its last component. Node 0 is the root, its own parent.
type node struct {
	parent, name uint32 // set once, read without the lock
	children     uint32 // the child added last, 0 for none, or many
	sibling      uint32 // the sibling added before this node, 0 for none
}

const (
	noName      = math.MaxUint32
	many        = math.MaxUint32
	smallFamily = 16
)

// Paths interns absolute paths into out, entry by entry, with all paths above them. When it fails out is untouched, and an entry at
// fault is found before anything is interned.
func (d *Dictionary) Paths(strings []string, out []Path) error {
	if err := room(len(out), len(strings)); err != nil {
		return err
	}
	scratch := d.borrow(len(strings))
	defer d.giveBack(scratch)
	if err := d.internPaths(strings, *scratch); err != nil {
		return err
	}
	for i, index := range *scratch {
		out[i] = Path(d.handle(index))
	}
	return nil
}

// Path interns one absolute path.
func (d *Dictionary) Path(s string) (Path, error) {
	var index [1]uint32
	if err := d.internPaths([]string{s}, index[:]); err != nil {
		return 0, err
	}
	return d.PathAt(index[0]), nil
}

func (d *Dictionary) internPaths(strings []string, out []uint32) error {
	if err := checkPaths(strings); err != nil {
		return err
	}
	in := interner{d: d}
	return in.paths(strings, out)
}

// PathsFromTokens interns paths given as components: counts[i] tokens for entry i, the tokens of all entries one after
// the other. An entry without tokens is the root.
func (d *Dictionary) PathsFromTokens(tokens []Token, counts []int, out []Path) error {
	if err := room(len(out), len(counts)); err != nil {
		return err
	}
	if err := d.checkComponents(tokens, counts); err != nil {
		return err
	}
	scratch := d.borrow(len(counts))
	defer d.giveBack(scratch)
	in := interner{d: d}
	if err := in.components(tokens, counts, *scratch); err != nil {
		return err
	}
	for i, index := range *scratch {
		out[i] = d.PathAt(index)
	}
	return nil
}

func (d *Dictionary) checkComponents(tokens []Token, counts []int) error {
	rest := tokens
	for entry, count := range counts {
		switch {
		case count < 0 || count > len(rest):
			return refuse("Token count must be between 0 and the %d tokens that are left (entry %d, count %d)", len(rest), entry, count)
		case count > MaxDepth:
			return refuse("Path must have at most %d components (entry %d): it has %d", MaxDepth, entry, count)
		}
		for i, token := range rest[:count] {
			index := d.index(uint64(token))
			if !d.tokens.has(index) {
				return refuse("Token handle was not found in this dictionary (entry %d, token %d, handle %d): intern the string first", entry, i, token)
			}
			if name := d.name(uint32(index)); reserved(name) || strings.IndexByte(name, '/') >= 0 {
				return refuse(`Path component must have no "/" and not be "." or ".." (entry %d, token %d, %s)`, entry, i, quote(name))
			}
		}
		rest = rest[count:]
	}
	if len(rest) > 0 {
		return refuse("Token counts must use up all tokens: %d of %d are left over", len(rest), len(tokens))
	}
	return nil
}

// PathTokens appends the components of a path to dst, from the root down. The root has none.
func (d *Dictionary) PathTokens(p Path, dst []Token) ([]Token, error) {
	depth, ok := d.Depth(p)
	if !ok {
		return dst, ErrUnknownPath
	}
	dst = slices.Grow(dst, depth)[:len(dst)+depth]
	at := d.paths.at(uint32(d.index(uint64(p))))
	for i := len(dst) - 1; depth > 0; i, depth = i-1, depth-1 {
		dst[i] = Token(d.handle(at.name))
		at = d.paths.at(at.parent)
	}
	return dst, nil
}

// PathString returns the text of a path.
func (d *Dictionary) PathString(p Path) (string, error) {
	index, ok := d.Index(p)
	switch {
	case !ok:
		return "", ErrUnknownPath
	case index == 0:
		return "/", nil
	}
	size := 0
	for i := index; i != 0; {
		at := d.paths.at(i)
		size += 1 + int(d.tokens.at(at.name).length)
		i = at.parent
	}
	s := make([]byte, size)
	for i := index; i != 0; {
		at := d.paths.at(i)
		name := d.name(at.name)
		copy(s[size-len(name):], name)
		size -= len(name) + 1
		s[size] = '/'
		i = at.parent
	}
	return unsafe.String(unsafe.SliceData(s), len(s)), nil // s is not written again
}

// Parent returns the path above p. The root has none, nor has a handle that this dictionary did not make.
func (d *Dictionary) Parent(p Path) (Path, bool) {
	index, ok := d.Index(p)
	if !ok || index == 0 {
		return 0, false
	}
	return Path(d.handle(d.paths.at(index).parent)), true
}

// Depth returns the number of components of a path, 0 for the root.
func (d *Dictionary) Depth(p Path) (int, bool) {
	index, ok := d.Index(p)
	depth := 0
	if ok {
		for ; index != 0; index = d.paths.at(index).parent {
			depth++
		}
	}
	return depth, ok
}

// Index returns the dense index of a path: indices count from 0, the root, in the order of interning, and a path's index is
// larger than its parent's. It is false for a handle that this dictionary did not make.
func (d *Dictionary) Index(p Path) (uint32, bool) {
	index := d.index(uint64(p))
	return uint32(index), d.paths.has(index)
}

// PathAt returns the path with a dense index, 0 when there is none.
func (d *Dictionary) PathAt(i uint32) Path {
	if !d.paths.has(uint64(i)) {
		return 0
	}
	return Path(d.handle(i))
}

// PathCount returns the number of paths interned so far, the root and all paths above others included.
func (d *Dictionary) PathCount() int { return int(d.paths.published.Load()) }

// path returns the index of a well-formed path and adds what is new of it.
func (in *interner) path(s string) (uint32, error) {
	if s == "/" {
		return 0, nil // and the next entry compares itself with the one before this
	}
	shared := sharedPrefix(in.before, s)
	kept := len(in.steps)
	for kept > 0 {
		end := in.steps[kept-1].end
		if end <= shared && (end == len(s) || s[end] == '/') {
			break
		}
		kept--
	}
	in.steps = in.steps[:kept]
	parent, end := uint32(0), 0
	if kept > 0 {
		parent, end = in.steps[kept-1].node, in.steps[kept-1].end
	}
	in.before = s[:end] // what steps stands for, should an entry fail
	for end < len(s) {
		start := end + 1
		if n := strings.IndexByte(s[start:], '/'); n >= 0 {
			end = start + n
		} else {
			end = len(s)
		}
		name, err := in.token(s[start:end])
		if err != nil {
			return 0, err
		}
		if parent, err = in.child(parent, name); err != nil {
			return 0, err
		}
		in.steps = append(in.steps, step{end, parent})
	}
	in.before = s
	return parent, nil
}

// components interns valid token sequences.
func (in *interner) components(tokens []Token, counts []int, out []uint32) error {
	in.d.names.RLock()
	defer in.unlock()
	for entry, count := range counts {
		at := uint32(0)
		for _, token := range tokens[:count] {
			var err error
			if at, err = in.child(at, uint32(in.d.index(uint64(token)))); err != nil {
				return err
			}
		}
		out[entry] = at
		tokens = tokens[count:]
	}
	return nil
}

// child returns the index of the path below parent with that name and adds it when it is new.
func (in *interner) child(parent, name uint32) (uint32, error) {
	d := in.d
	if index, ok := d.findChild(parent, name); ok {
		return index, nil
	}
	if in.upgrade() {
		if index, ok := d.findChild(parent, name); ok {
			return index, nil
		}
	}
	if d.closed {
		return 0, errClosed
	}
	if d.paths.length >= full {
		return 0, errFull
	}
	return d.addChild(parent, name), nil
}

func (d *Dictionary) findChild(parent, name uint32) (uint32, bool) {
	at := d.paths.at(parent).children
	if at == many {
		return d.findInTable(parent, name)
	}
	for at != 0 {
		child := d.paths.at(at)
		if child.name == name {
			return at, true
		}
		at = child.sibling
	}
	return 0, false
}

func (d *Dictionary) addChild(parent, name uint32) uint32 {
	family := d.paths.at(parent)
	index := d.paths.push(node{parent: parent, name: name})
	if family.children != many {
		size := 0
		for at := family.children; at != 0; at = d.paths.at(at).sibling {
			size++
		}
		if size < smallFamily {
			d.paths.at(index).sibling = family.children
			family.children = index
			return index
		}
		for at := family.children; at != 0; at = d.paths.at(at).sibling {
			d.pathTable.insert(childHash(parent, d.paths.at(at).name), at)
		}
		family.children = many
	}
	d.pathTable.insert(childHash(parent, name), index)
	return index
}

func (d *Dictionary) findInTable(parent, name uint32) (uint32, bool) {
	hash, slots := childHash(parent, name), d.pathTable.slots
	for i, mask := d.pathTable.home(hash); slots[i] != 0; i = (i + 1) & mask {
		if uint32(slots[i]>>32) == hash {
			index := uint32(slots[i]) - 1
			if child := d.paths.at(index); child.parent == parent && child.name == name {
				return index, true
			}
		}
	}
	return 0, false
}

// childHash gives siblings with consecutive names neighbouring slots: a batch of new names below one parent then fills cache line after
// cache line.
func childHash(parent, name uint32) uint32 {
	x := (uint64(parent)<<32 | uint64(name>>3)) ^ 0xa0761d6478bd642f
	hi, lo := bits.Mul64(x, 0xe7037ed1a0b428db)
	hi, lo = bits.Mul64(hi^lo, 0x8ebc6af09c88c6e3)
	return uint32(hi^lo)&^7 | name&7
}
