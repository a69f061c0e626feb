package pathdict

import "runtime"

// A scene in which prims come and go under ever new paths leaves their names behind. Compact drops what nothing names any more.
//
// It marks and sweeps, while others go on. Once it has begun, every call marks what it finds or makes, so that a name that comes
// into use meanwhile is not missed; a call that had begun before, and has made nothing of what it found, starts anew. First
// the lists are marked, from which everything else gets its paths, then what each holder names; what is not marked at the end
// goes, some thousand records at a time.
//
// The index of a path that has gone is given to another, larger than that of its parent as ever. The handle is not: a call with
// the old number is told that it is unknown.

// Named is what is still named, while a dictionary is compacted. It may be used by many threads.
type Named struct {
	d      *Dictionary
	paths  marks
	tokens marks
}

// Gone is how much a Compact has dropped.
type Gone struct{ Paths, Tokens int }

// sweepTurn is how many records are swept before others get the lock.
const sweepTurn = 1 << 13

// Compact drops the paths that nothing names, and the tokens that were made for them alone. A path is named by the lists that
// are alive, by paths below it, by itself when it was interned by itself (Paths), and by what name says, which holders of
// indices are asked for. name must look at each holder under the lock by which that holder uses the dictionary. When name
// fails, everything stays.
func (d *Dictionary) Compact(name func(*Named) error) (Gone, error) {
	d.compacting.Lock()
	defer d.compacting.Unlock()
	d.shelf.forgetRecent()
	runtime.GC() // lists that are not held are alive until then
	n, err := d.beginCompact()
	if err != nil {
		return Gone{}, err
	}
	defer d.endCompact()
	for _, list := range d.shelf.alive() {
		n.Paths(list.indices)
	}
	if err := name(n); err != nil {
		return Gone{}, err
	}
	return Gone{Paths: d.sweepPaths(n), Tokens: d.sweepTokens(n)}, nil
}

// beginCompact makes all that can fail, and lets every call mark.
func (d *Dictionary) beginCompact() (*Named, error) {
	d.names.Lock()
	defer d.names.Unlock()
	if d.closed {
		return nil, errClosed
	}
	if err := d.tokenAges.reach(d.tokens.length); err != nil {
		return nil, err
	}
	if err := d.pathAges.reach(d.paths.length); err != nil {
		return nil, err
	}
	n := &Named{d, newMarks(d.paths.length), newMarks(d.tokens.length)}
	for _, stranger := range d.strangers {
		n.Path(stranger)
	}
	d.age.Add(1)
	d.named.Store(n)
	return n, nil
}

func (d *Dictionary) endCompact() {
	d.names.Lock()
	defer d.names.Unlock()
	d.named.Store(nil)
	d.text.holes.join()
}

// Path marks a path by its dense index, and with it those above.
func (n *Named) Path(index uint32) { n.paths.set(index) }

// Paths marks paths by their dense indices.
func (n *Named) Paths(indices []uint32) {
	for _, index := range indices {
		n.paths.set(index)
	}
}

// Handle marks a path by a number that may be its handle, or any other.
func (n *Named) Handle(p Path) {
	if index, known := n.d.Index(p); known {
		n.paths.set(index)
	}
}

// Token marks a token by a number that may be its handle, or any other.
func (n *Named) Token(t Token) {
	if index, known := n.d.tokenIndex(t); known {
		n.tokens.set(index)
	}
}

// sweepPaths goes from the last path to the first: those below a path are before it.
func (d *Dictionary) sweepPaths(n *Named) (gone int) {
	d.names.Lock()
	defer d.names.Unlock()
	for index := d.paths.length - 1; index > root; index-- {
		if index%sweepTurn == 0 {
			d.names.Unlock()
			d.names.Lock()
		}
		if d.vacant.Has(int(index)) {
			continue
		}
		if at := d.paths.at(index); n.paths.has(index) || d.pathPins.has(index) {
			n.paths.set(at.parent)
			n.tokens.set(at.name)
		} else {
			d.dropPath(index)
			gone++
		}
	}
	return gone
}

// dropPath takes out a path that has no children.
func (d *Dictionary) dropPath(index uint32) {
	at := d.paths.at(index)
	if family := d.paths.at(at.parent); family.children == large {
		d.pathTable.remove(childHash(at.parent, at.name), index)
	} else {
		link := &family.children
		for *link != index {
			link = &d.paths.at(*link).sibling
		}
		*link = at.sibling
	}
	*at = node{name: noName}
	d.pathAges.set(index, noAge)
	d.vacant.add(index)
}

func (d *Dictionary) sweepTokens(n *Named) (gone int) {
	d.names.Lock()
	defer d.names.Unlock()
	for index := range d.tokens.length {
		if index%sweepTurn == sweepTurn-1 {
			d.names.Unlock()
			d.names.Lock()
		}
		if n.tokens.has(index) || d.tokenPins.has(index) || d.onTrial(index) || d.span(index) == 0 {
			continue
		}
		d.dropToken(index)
		d.tokenAges.set(index, noAge)
		gone++
	}
	return gone
}
