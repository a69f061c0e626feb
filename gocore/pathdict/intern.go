package pathdict

import "slices"

// turn is how many entries of a batch are interned before the lock is offered to others.
const turn = 512

// interner does the work of one interning call. Each turn begins with the read lock, which is enough while everything asked
// for is known, and trades it for the write lock at the first new name.
type interner struct {
	d         *Dictionary
	exclusive bool

	// The components of the path interned last, so that a sibling costs one component and not its whole depth.
	before string
	steps  []step
}

// step is a component of a path: where it ends in the string, and its node.
type step struct {
	end  int
	node uint32
}

// tokens interns valid token strings into out.
func (in *interner) tokens(entries []string, out []uint32) error {
	for some := range slices.Chunk(entries, turn) {
		if err := in.someTokens(some, out); err != nil {
			return err
		}
		out = out[len(some):]
	}
	return nil
}

func (in *interner) someTokens(entries []string, out []uint32) (err error) {
	in.lock()
	defer in.unlock()
	for i, s := range entries {
		if out[i], err = in.token(s); err != nil {
			return err
		}
	}
	return nil
}

// paths interns well-formed path strings into out.
func (in *interner) paths(entries []string, out []uint32) error {
	for some := range slices.Chunk(entries, turn) {
		if err := in.somePaths(some, out); err != nil {
			return err
		}
		out = out[len(some):]
	}
	return nil
}

func (in *interner) somePaths(entries []string, out []uint32) (err error) {
	in.lock()
	defer in.unlock()
	for i, s := range entries {
		if out[i], err = in.path(s); err != nil {
			return err
		}
	}
	return nil
}

func (in *interner) lock() { in.d.names.RLock() }

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
