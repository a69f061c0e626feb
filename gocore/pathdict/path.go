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
	root        = 0              // the root's index; it is its own parent and nobody's child
	noName      = math.MaxUint32 // the root's name
	large       = math.MaxUint32 // as children: the family is in the table
	smallFamily = 16             // children that a chain holds
)

// Paths interns absolute paths into out, entry by entry, and with each path all paths above it. When an entry is refused,
// nothing is interned; when it fails at all, out is untouched.
func (d *Dictionary) Paths(strings []string, out []Path) error {
	if err := checkRoom(len(out), len(strings)); err != nil {
		return err
	}
	if err := checkPaths(strings); err != nil {
		return err
	}
	in := d.borrow(len(strings))
	defer d.giveBack(in)
	if err := in.paths(strings); err != nil {
		return err
	}
	for i, index := range in.indices {
		out[i] = Path(d.handle(index))
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
	if err := in.components(tokens, counts); err != nil {
		return err
	}
	for i, index := range in.indices {
		out[i] = Path(d.handle(index))
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
	index, _ := d.Index(p)
	for i := len(dst) - 1; index != root; i-- {
		at := d.paths.at(index)
		dst[i] = Token(d.handle(at.name))
		index = at.parent
	}
	return dst, nil
}

// PathString returns the text of a path.
func (d *Dictionary) PathString(p Path) (string, error) {
	index, ok := d.Index(p)
	if !ok {
		return "", ErrUnknownPath
	}
	if index == root {
		return "/", nil
	}
	size := 0
	for i := index; i != root; i = d.paths.at(i).parent {
		size += 1 + d.span(d.paths.at(i).name).length()
	}
	text := make([]byte, size)
	for i := index; i != root; i = d.paths.at(i).parent {
		name := d.name(d.paths.at(i).name)
		size -= 1 + len(name)
		text[size] = '/'
		copy(text[size+1:], name)
	}
	return unsafe.String(unsafe.SliceData(text), len(text)), nil // nobody writes to text any more
}

// Parent returns the path above p. It is false for the root, and for a handle that this dictionary did not make.
func (d *Dictionary) Parent(p Path) (Path, bool) {
	index, ok := d.Index(p)
	if !ok || index == root {
		return 0, false
	}
	return Path(d.handle(d.paths.at(index).parent)), true
}

// Depth returns the number of components of a path, 0 for the root. It is false for a handle that this dictionary did not
// make.
func (d *Dictionary) Depth(p Path) (depth int, ok bool) {
	index, ok := d.Index(p)
	if !ok {
		return 0, false
	}
	for ; index != root; index = d.paths.at(index).parent {
		depth++
	}
	return depth, true
}

// Index returns the dense index of a path. Indices count up from 0, the root, in the order of interning, so that a path's
// index is larger than those of the paths above it. It is false for a handle that this dictionary did not make.
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

// PathCount returns the number of paths interned so far, the root and the paths above others included. Every dense index
// is below it.
func (d *Dictionary) PathCount() int { return int(d.paths.published.Load()) }

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

// child returns the index of the path below parent with that name and adds the path when it is new.
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
	return d.addChild(parent, name)
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
	if err := d.checkGrowth(d.paths.length); err != nil {
		return 0, err
	}
	if err := d.paths.reserve(); err != nil {
		return 0, err
	}
	family := d.paths.at(parent)
	if family.children != large && d.chainLength(family.children) == smallFamily {
		if err := d.moveToTable(parent); err != nil {
			return 0, err
		}
	}
	if family.children != large {
		index := d.paths.push(node{parent: parent, name: name, sibling: family.children})
		family.children = index
		return index, nil
	}
	if err := d.pathTable.reserve(1); err != nil {
		return 0, err
	}
	index := d.paths.push(node{parent: parent, name: name})
	d.pathTable.insert(childHash(parent, name), index)
	return index, nil
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

// childHash gives the children of one parent whose tokens were interned in a row slots in a row.
func childHash(parent, name uint32) uint32 {
	hi, lo := bits.Mul64((uint64(parent)<<32|uint64(name/tile))^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	hi, lo = bits.Mul64(hi^lo, 0x8ebc6af09c88c6e3)
	return near(uint32(hi^lo), name)
}
