package pathdict

import (
	"hash/maphash"
	"strings"
)

// What is asked here interns nothing: a name that was never made stays unknown.

// LookupToken returns the token of a string. It is false for a string that was never interned. The empty string is token 0.
func (d *Dictionary) LookupToken(s string) (Token, bool) {
	if s == "" {
		return 0, true
	}
	d.names.RLock()
	defer d.names.RUnlock()
	index, ok := d.findToken(d.tokenHash(s), s)
	if !ok {
		return 0, false
	}
	return d.tokenAt(index), true
}

// LookupPaths finds absolute paths, entry by entry; out gets 0 for one that was never interned. When an entry is no path at
// all, out is untouched.
func (d *Dictionary) LookupPaths(entries []string, out []Path) error {
	if err := checkRoom(len(out), len(entries)); err != nil {
		return err
	}
	if err := checkPaths(entries); err != nil {
		return err
	}
	d.names.RLock()
	defer d.names.RUnlock()
	for i, s := range entries {
		out[i] = 0
		if index, ok := d.findPath(s); ok {
			out[i] = d.pathAt(index)
		}
	}
	return nil
}

// NewListOfKnown is NewListFromStrings for a list that is only asked for. A path that was never made is not interned: a
// stranger stands for it, a path that no text finds and that nothing is ever written to. Equal texts get the same one, and
// later lists use it again. unknown is how many strangers there are.
func (d *Dictionary) NewListOfKnown(strings []string) (h ListHandle, unknown int, err error) {
	if err := checkPaths(strings); err != nil {
		return 0, 0, err
	}
	in := d.borrow(len(strings))
	defer d.giveBack(in)
	h, err = in.list(func() (err error) {
		unknown, err = in.knownTexts(strings)
		return err
	})
	return h, unknown, err
}

// knownTexts finds paths, and strangers for those that were never made.
func (in *interner) knownTexts(strings []string) (unknown int, err error) {
	d, numbers := in.d, map[string]int{} // of the unknown
	d.names.RLock()
	in.age = d.age.Load()
	for i, s := range strings {
		index, known := d.findPath(s)
		if _, met := numbers[s]; !known && !met {
			numbers[s] = len(numbers)
		}
		in.indices[i] = index
	}
	strangers := d.strangers
	d.names.RUnlock()
	if len(numbers) > len(strangers) {
		if strangers, err = d.moreStrangers(len(numbers)); err != nil {
			return 0, err
		}
	}
	for i, s := range strings {
		if number, met := numbers[s]; met {
			in.indices[i] = strangers[number]
		}
	}
	return len(numbers), nil
}

// moreStrangers makes nodes without a parent until there are enough of them.
func (d *Dictionary) moreStrangers(count int) ([]uint32, error) {
	d.names.Lock()
	defer d.names.Unlock()
	const name = "(unknown)"
	hash := d.tokenHash(name)
	token, known := d.findToken(hash, name)
	if !known {
		var err error
		if token, err = d.addToken(hash, name); err != nil {
			return nil, err
		}
		d.tokens.reveal()
	}
	delete(d.trials, token)
	d.tokenPins.set(token)
	defer d.paths.reveal()
	for len(d.strangers) < count {
		if err := d.reservePath(); err != nil {
			return nil, err
		}
		d.strangers = append(d.strangers, d.paths.push(node{parent: root, name: token}))
	}
	return d.strangers, nil
}

func (d *Dictionary) findPath(s string) (uint32, bool) {
	at := uint32(root)
	if s == "/" {
		return at, !d.closed
	}
	for name := range strings.SplitSeq(s[1:], "/") {
		token, known := d.findToken(d.tokenHash(name), name)
		if !known {
			return 0, false
		}
		if at, known = d.findChild(at, token); !known {
			return 0, false
		}
		if n := d.named.Load(); n != nil {
			n.paths.set(at)
		}
	}
	return at, true
}

// What is kept for every path is kept in arrays by dense index, and goes from path to path by these.

// ParentAt returns the dense index of the path above the one at i. The root, 0, is above itself.
func (d *Dictionary) ParentAt(i uint32) uint32 { return d.paths.at(i).parent }

// NameAt returns the last component of the path at i, as a view that is valid until Close. The root has none.
func (d *Dictionary) NameAt(i uint32) string {
	if i == root {
		return ""
	}
	return d.name(d.paths.at(i).name)
}

// ListAt returns the list of the paths at these dense indices. Like a Sublist it has no handle.
func (d *Dictionary) ListAt(indices []uint32) *List {
	hash := maphash.Bytes(d.seed, bytesOf(indices))
	s := &d.shelf
	s.lock.Lock()
	defer s.lock.Unlock()
	list := s.intern(d, indices, hash)
	if list.handles == 0 {
		s.remember(list)
	}
	return list
}
