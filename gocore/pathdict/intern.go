package pathdict

// turn is how many entries of a batch are interned before the lock is offered to others.
const turn = 512

// interner does the work of one call that turns entries into indices. It begins with the read lock, which is enough while
// everything asked for is known, and trades it for the write lock at the first new name.
type interner struct {
	d         *Dictionary
	indices   []uint32 // the results, kept here until all of them are known: a call that fails leaves out as it was
	exclusive bool

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
	in.before, in.steps = "", in.steps[:0] // before is the caller's memory
	d.interners.Put(in)
}

// tokens interns valid token strings.
func (in *interner) tokens(entries []string) (err error) {
	in.lock()
	defer in.unlock()
	for i, s := range entries {
		in.offerLock(i)
		if in.indices[i], err = in.token(s); err != nil {
			return err
		}
	}
	return nil
}

// paths interns well-formed path strings.
func (in *interner) paths(entries []string) (err error) {
	in.lock()
	defer in.unlock()
	for i, s := range entries {
		in.offerLock(i)
		if in.indices[i], err = in.path(s); err != nil {
			return err
		}
	}
	return nil
}

// components interns paths given as known tokens, counts[i] of them for entry i.
func (in *interner) components(tokens []Token, counts []int) (err error) {
	in.lock()
	defer in.unlock()
	for i, count := range counts {
		in.offerLock(i)
		at := uint32(root)
		for _, token := range tokens[:count] {
			if at, err = in.child(at, uint32(in.d.index(uint64(token)))); err != nil {
				return err
			}
		}
		in.indices[i] = at
		tokens = tokens[count:]
	}
	return nil
}

func (in *interner) lock() { in.d.names.RLock() }

// unlock publishes what was added and gives the lock back.
func (in *interner) unlock() {
	if !in.exclusive {
		in.d.names.RUnlock()
		return
	}
	in.exclusive = false
	in.d.tokens.publish()
	in.d.paths.publish()
	in.d.names.Unlock()
}

// offerLock lets others in now and then. What steps and indices say stays true meanwhile, because nothing is ever removed.
func (in *interner) offerLock(entry int) {
	if entry%turn == turn-1 {
		in.unlock()
		in.lock()
	}
}

// upgrade trades the read lock for the write lock. When it reports true, others may have written in between, and what was
// absent must be looked up again.
func (in *interner) upgrade() bool {
	if in.exclusive {
		return false
	}
	in.d.names.RUnlock()
	in.d.names.Lock()
	in.exclusive = true
	return true
}
