package pathdict

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"unsafe"
)

// node is a path: the path above it and the token of its last component.
//
// A node's children are found in one of two ways. A small family is a chain through the nodes themselves: most parents of a
// scene have a handful of children, made one after the other, so that the chain lies in a few cache lines. The children of
// a large family are in the path table.
type node struct {
	parent, name uint32 // written once, read without the lock
	children     uint32 // the youngest child, 0 for none, or large
	sibling      uint32 // the next older child of the same parent, 0 for none; of no use in a large family
}

const (
	root        = 0              // the root's index; it is its own parent, and no child
	noName      = math.MaxUint32 // the root's name
	large       = math.MaxUint32 // as children: the family is in the table
	smallFamily = 16             // children that a chain holds
)

// Paths interns absolute paths into out, entry by entry, to stay, and with each path all paths above it. When an entry is
// refused, nothing is interned; when it fails at all, out is untouched.
func (d *Dictionary) Paths(strings []string, out []Path) error {
	if err := checkRoom(len(out), len(strings)); err != nil {
		return err
	}
	if err := checkPaths(strings); err != nil {
		return err
	}
	in := d.borrow(len(strings))
	defer d.giveBack(in)
	in.stay = true
	if err := in.paths(strings); err != nil {
		return err
	}
	for i, index := range in.indices {
		out[i] = d.pathAt(index)
	}
	return nil
}

// Path interns one absolute path.
func (d *Dictionary) Path(s string) (Path, error) {
	one, path := [1]string{s}, [1]Path{}
	err := d.Paths(one[:], path[:])
	return path[0], err
}

// PathsFromTokens interns paths given by their components: counts[i] tokens make entry i, and the tokens of all entries
// follow each other. An entry without tokens is the root. Failure is as for Paths.
func (d *Dictionary) PathsFromTokens(tokens []Token, counts []int, out []Path) error {
	if err := checkRoom(len(out), len(counts)); err != nil {
		return err
	}
	if err := d.checkComponents(tokens, counts); err != nil {
		return err
	}
	in := d.borrow(len(counts))
	defer d.giveBack(in)
	in.stay = true
	if err := in.components(tokens, counts); err != nil {
		return err
	}
	for i, index := range in.indices {
		out[i] = d.pathAt(index)
	}
	return nil
}

// PathTokens appends the components of a path to dst, from the root down. The root has none.
func (d *Dictionary) PathTokens(p Path, dst []Token) ([]Token, error) {
	d.names.RLock()
	defer d.names.RUnlock()
	index, ok := d.Index(p)
	if !ok {
		return dst, ErrUnknownPath
	}
	depth := d.depth(index)
	dst = slices.Grow(dst, depth)[:len(dst)+depth]
	for i := len(dst) - 1; index != root; i-- {
		at := d.paths.at(index)
		dst[i] = d.tokenAt(at.name)
		index = at.parent
	}
	return dst, nil
}

// PathString returns the text of a path.
func (d *Dictionary) PathString(p Path) (string, error) {
	d.names.RLock() // the path may be one that nothing names
	defer d.names.RUnlock()
	index, ok := d.Index(p)
	if !ok {
		return "", ErrUnknownPath
	}
	text := make([]byte, d.size(index))
	d.write(text, index)
	return unsafe.String(unsafe.SliceData(text), len(text)), nil // text is not written to any more
}

// PathTexts writes the texts of as many of the paths into a buffer as it has room for, one behind the other, notes where each
// ends, and returns how many there are.
func (d *Dictionary) PathTexts(paths []Path, buffer []byte, ends []int) (done int, err error) {
	if err := checkRoom(len(ends), len(paths)); err != nil {
		return 0, err
	}
	d.names.RLock()
	defer d.names.RUnlock()
	used := 0
	for i, p := range paths {
		if i%turn == turn-1 {
			d.names.RUnlock()
			d.names.RLock()
		}
		index, ok := d.Index(p)
		if !ok {
			return 0, ErrUnknownPath
		}
		if used += d.size(index); used > len(buffer) {
			return i, nil
		}
		d.write(buffer[:used], index)
		ends[i] = used
	}
	return len(paths), nil
}

// size is the number of bytes of a path's text.
func (d *Dictionary) size(index uint32) (size int) {
	if index == root {
		return 1
	}
	for i := index; i != root; i = d.paths.at(i).parent {
		size += 1 + d.span(d.paths.at(i).name).length()
	}
	return size
}

// write writes a path's text to the end of a buffer.
func (d *Dictionary) write(to []byte, index uint32) {
	end := len(to)
	if index == root {
		to[end-1] = '/'
	}
	for i := index; i != root; i = d.paths.at(i).parent {
		name := d.name(d.paths.at(i).name)
		end -= 1 + len(name)
		to[end] = '/'
		copy(to[end+1:], name)
	}
}

// Parent returns the path above p. It is false for the root, and for a handle that this dictionary did not make.
func (d *Dictionary) Parent(p Path) (Path, bool) {
	d.names.RLock()
	defer d.names.RUnlock()
	index, ok := d.Index(p)
	if !ok || index == root {
		return 0, false
	}
	return d.pathAt(d.paths.at(index).parent), true
}

// Depth returns the number of components of a path, 0 for the root. It is false for a handle that this dictionary did not
// make.
func (d *Dictionary) Depth(p Path) (depth int, ok bool) {
	d.names.RLock()
	defer d.names.RUnlock()
	index, ok := d.Index(p)
	if !ok {
		return 0, false
	}
	return d.depth(index), true
}

func (d *Dictionary) depth(index uint32) (depth int) {
	for ; index != root; index = d.paths.at(index).parent {
		depth++
	}
	return depth
}

// Index returns the dense index of a path. Indices count up from 0, the root, in the order of interning; those of paths that
// have gone are used again. A path's index is larger than those of the paths above it. It is false for a handle that this
// dictionary did not make, or has dropped.
func (d *Dictionary) Index(p Path) (uint32, bool) {
	index, age, ok := d.split(uint64(p))
	return index, ok && age != noAge && d.paths.has(uint64(index)) && d.pathAges.of(index) == age
}

// PathAt returns the path with a dense index, 0 when there is none.
func (d *Dictionary) PathAt(i uint32) Path {
	if !d.paths.has(uint64(i)) {
		return 0
	}
	return d.pathAt(i)
}

// PathCount returns the number of paths interned so far, the root and the paths above others included. Every dense index
// is below it.
func (d *Dictionary) PathCount() int { return int(d.paths.visible.Load()) }

// path returns the index of a well-formed path and adds what is new of it.
func (in *interner) path(s string) (uint32, error) {
	if s == "/" {
		return root, nil
	}
	in.keepShared(s)
	at, end := uint32(root), 0
	if n := len(in.steps); n > 0 {
		at, end = in.steps[n-1].node, in.steps[n-1].end
	}
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
		if at, err = in.child(at, name); err != nil {
			return 0, err
		}
		in.steps = append(in.steps, step{end, at})
	}
	return at, nil
}

// keepShared drops the steps of the path before that are not steps of s.
func (in *interner) keepShared(s string) {
	shared, kept := sharedPrefix(in.before, s), len(in.steps)
	for kept > 0 {
		if end := in.steps[kept-1].end; end <= shared && (end == len(s) || s[end] == '/') {
			break
		}
		kept--
	}
	in.before, in.steps = s, in.steps[:kept]
}

// child returns the index of the path below parent with that name and adds the path when it is new. A compaction that is under
// way leaves it.
func (in *interner) child(parent, name uint32) (index uint32, err error) {
	d := in.d
	index, known := d.findChild(parent, name)
	if !known && in.upgrade() {
		if in.stale() {
			return 0, errStale
		}
		index, known = d.findChild(parent, name)
	}
	if !known {
		if index, err = d.addChild(parent, name); err != nil {
			return 0, err
		}
	}
	if in.named != nil {
		in.named.paths.set(parent)
		in.named.paths.set(index)
		in.named.tokens.set(name)
	}
	return index, nil
}

func (d *Dictionary) findChild(parent, name uint32) (uint32, bool) {
	index := d.paths.at(parent).children
	if index == large {
		return d.pathTable.find(childHash(parent, name), func(index uint32) bool {
			child := d.paths.at(index)
			return child.parent == parent && child.name == name
		})
	}
	for index != 0 {
		child := d.paths.at(index)
		if child.name == name {
			return index, true
		}
		index = child.sibling
	}
	return 0, false
}

func (d *Dictionary) addChild(parent, name uint32) (uint32, error) {
	if err := d.reservePath(); err != nil {
		return 0, err
	}
	family := d.paths.at(parent)
	if family.children != large && d.chainLength(family.children) == smallFamily {
		if err := d.moveToTable(parent); err != nil {
			return 0, err
		}
	}
	if family.children != large {
		index := d.pushPath(node{parent: parent, name: name, sibling: family.children})
		family.children = index
		return index, nil
	}
	if err := d.pathTable.reserve(1); err != nil {
		return 0, err
	}
	index := d.pushPath(node{parent: parent, name: name})
	d.pathTable.insert(childHash(parent, name), index)
	return index, nil
}

// reservePath makes room for one more path.
func (d *Dictionary) reservePath() error {
	if err := d.checkGrowth(d.paths.length); err != nil {
		return err
	}
	if err := d.pathPins.reach(d.paths.length); err != nil {
		return err
	}
	return d.paths.reserve()
}

// pushPath gives a path the index of one that has gone, or the next.
func (d *Dictionary) pushPath(path node) uint32 {
	index, vacant := d.vacant.above(path.parent)
	if !vacant {
		return d.paths.push(path)
	}
	*d.paths.at(index) = path
	d.pathAges.set(index, d.age.Load())
	return index
}

func (d *Dictionary) chainLength(index uint32) (length int) {
	for ; index != 0; index = d.paths.at(index).sibling {
		length++
	}
	return length
}

func (d *Dictionary) moveToTable(parent uint32) error {
	if err := d.pathTable.reserve(smallFamily); err != nil {
		return err
	}
	family := d.paths.at(parent)
	for index := family.children; index != 0; index = d.paths.at(index).sibling {
		d.pathTable.insert(childHash(parent, d.paths.at(index).name), index)
	}
	family.children = large
	return nil
}

// childHash hashes a path so that children of one parent, whose tokens were interned one after another, get neighbouring slots.
func childHash(parent, name uint32) uint32 {
	hi, lo := bits.Mul64((uint64(parent)<<32|uint64(name/tile))^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	hi, lo = bits.Mul64(hi^lo, 0x8ebc6af09c88c6e3)
	return near(uint32(hi^lo), name)
}
