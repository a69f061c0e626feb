package pathdict

import "errors"

// turn is how many entries of a batch are interned before the lock is offered to others.
const turn = 512

// interner does the work of one call that turns entries into indices. It begins with the read lock, which is enough while
// everything asked for is known, and trades it for the write lock at the first new name.
type interner struct {
	d         *Dictionary
	indices   []uint32 // the results, kept here until all of them are known: a call that fails leaves out as it was
	exclusive bool
	stay      bool   // the results stay, whatever names them
	named     *Named // what is found is marked here, while a compaction is at work
	age       uint32 // the dictionary's when the call began

	// The path interned last and its components, so that a sibling costs one component and not its whole depth.
	before string
	steps  []step
}

// step is a component of a path: where it ends in the string, and its node.
type step struct {
	end  int
	node uint32
}

// borrow returns an interner for a number of entries. It goes back through giveBack, and with it the indices.
func (d *Dictionary) borrow(entries int) *interner {
	in, ok := d.interners.Get().(*interner)
	if !ok {
		in = &interner{d: d}
	}
	if cap(in.indices) < entries {
		in.indices = make([]uint32, entries)
	}
	in.indices = in.indices[:entries]
	return in
}

func (d *Dictionary) giveBack(in *interner) {
	in.before, in.steps, in.stay, in.named = "", in.steps[:0], false, nil // before is the caller's memory
	d.interners.Put(in)
}

// errStale says that a compaction has begun since the call did: what the call has found may be gone.
var errStale = errors.New("a compaction has begun")

// each calls do with the index of every entry while the lock is held. Everything before a compaction begins is done again.
func (in *interner) each(do func(i int) error) (err error) {
	for {
		in.before, in.steps = "", in.steps[:0]
		if err = in.once(do); err != errStale {
			return err
		}
	}
}

func (in *interner) once(do func(i int) error) error {
	in.lock()
	defer in.unlock()
	in.age = in.d.age.Load()
	for i := range in.indices {
		if i%turn == turn-1 { // let others in now and then
			in.unlock()
			in.lock()
			if in.stale() {
				return errStale
			}
		}
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

// tokens interns valid token strings.
func (in *interner) tokens(entries []string) error {
	return in.each(func(i int) (err error) {
		if in.indices[i], err = in.token(entries[i]); err == nil {
			in.d.tokenPins.set(in.indices[i])
		}
		return err
	})
}

// paths interns well-formed path strings.
func (in *interner) paths(entries []string) error {
	return in.each(func(i int) (err error) {
		in.indices[i], err = in.path(entries[i])
		in.keep(i, err)
		return err
	})
}

// components interns paths given as known tokens, counts[i] of them for entry i.
func (in *interner) components(tokens []Token, counts []int) error {
	rest := tokens
	return in.each(func(i int) (err error) {
		if i == 0 {
			rest = tokens
		}
		at := uint32(root)
		for _, token := range rest[:counts[i]] {
			name, _ := in.d.tokenIndex(token) // it stays
			if at, err = in.child(at, name); err != nil {
				return err
			}
		}
		in.indices[i], rest = at, rest[counts[i]:]
		in.keep(i, nil)
		return nil
	})
}

// keep makes a path that was found one that stays, if that is asked for.
func (in *interner) keep(i int, err error) {
	if in.stay && err == nil {
		in.d.pathPins.set(in.indices[i])
	}
}

// known finds the indices of handles. Without ages they are what is left of the handles.
func (in *interner) known(paths []Path) error {
	in.lock()
	defer in.unlock()
	d := in.d
	in.age = d.age.Load()
	visible, aged := uint64(d.paths.visible.Load()), d.pathAges.length > 0
	for i, p := range paths {
		number := uint64(p) - d.base - 1
		index, ok := uint32(number), number < visible
		if aged {
			index, ok = d.Index(p)
		}
		if !ok {
			return refuse("%s (entry %d, handle %d): intern the path first", ErrUnknownPath, i, p)
		}
		if in.indices[i] = index; in.named != nil {
			in.named.paths.set(index)
		}
	}
	return nil
}

func (in *interner) lock() {
	in.d.names.RLock()
	in.named = in.d.named.Load()
}

// stale reports whether a compaction has begun since the call did.
func (in *interner) stale() bool { return in.age != in.d.age.Load() }

// unlock reveals what was added and gives the lock back.
func (in *interner) unlock() {
	if !in.exclusive {
		in.d.names.RUnlock()
		return
	}
	in.exclusive = false
	in.d.tokens.reveal()
	in.d.paths.reveal()
	in.d.names.Unlock()
}

// upgrade trades the read lock for the write lock. When it reports true, others may have written in between, and what was
// absent must be looked up again.
func (in *interner) upgrade() bool {
	if in.exclusive {
		return false
	}
	in.d.names.RUnlock()
	in.d.names.Lock()
	in.exclusive, in.named = true, in.d.named.Load()
	return true
}
