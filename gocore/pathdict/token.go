package pathdict

import "hash/maphash"

// Tokens interns strings into out, entry by entry. When it fails nothing is interned and out is untouched.
func (d *Dictionary) Tokens(strings []string, out []Token) error {
	if err := room(len(out), len(strings)); err != nil {
		return err
	}
	if err := checkTokens(strings); err != nil {
		return err
	}
	scratch := d.borrow(len(strings))
	defer d.giveBack(scratch)
	in := interner{d: d}
	if err := in.tokens(strings, *scratch); err != nil {
		return err
	}
	for i, index := range *scratch {
		out[i] = Token(d.handle(index))
	}
	return nil
}

// Token interns one string.
func (d *Dictionary) Token(s string) (Token, error) {
	one, index := [1]string{s}, [1]uint32{}
	if err := checkTokens(one[:]); err != nil {
		return 0, err
	}
	in := interner{d: d}
	if err := in.someTokens(one[:], index[:]); err != nil {
		return 0, err
	}
	return Token(d.handle(index[0])), nil
}

// TokenString returns the text of a token as a view of the dictionary's memory: it is followed by a NUL byte and is valid
// until Close. Token 0 is "". The second result is false for a handle that this dictionary did not make.
func (d *Dictionary) TokenString(t Token) (string, bool) {
	if t == 0 {
		return "", true
	}
	index := d.index(uint64(t))
	if !d.tokens.has(index) {
		return "", false
	}
	return d.name(uint32(index)), true
}

// handle and index convert between handles and dense indices. The index of a handle that is 0 or belongs to an earlier dictionary wraps
// around to a number that no vector has.
func (d *Dictionary) handle(index uint32) uint64 { return d.base + 1 + uint64(index) }
func (d *Dictionary) index(handle uint64) uint64 { return handle - d.base - 1 }

func (d *Dictionary) name(index uint32) string { return d.text.at(*d.tokens.at(index)) }

// token returns the index of a valid token string and adds it when it is new.
func (in *interner) token(s string) (uint32, error) {
	d := in.d
	hash := d.hash(s)
	if index, ok := d.findToken(hash, s); ok {
		return index, nil
	}
	if in.upgrade() {
		if index, ok := d.findToken(hash, s); ok {
			return index, nil
		}
	}
	if d.closed {
		return 0, errClosed
	}
	if d.tokens.length >= full {
		return 0, errFull
	}
	at, err := d.text.add(s)
	if err != nil {
		return 0, err
	}
	index := d.tokens.push(at)
	d.tokenTable.insert(hash, index)
	return index, nil
}

func (d *Dictionary) hash(s string) uint32 {
	last := len(s) - 1
	return uint32(maphash.String(d.seed, s[:last]))&^7 | uint32(s[last]&7)
}

func (d *Dictionary) findToken(hash uint32, s string) (uint32, bool) {
	slots := d.tokenTable.slots
	if len(slots) == 0 {
		return 0, false
	}
	for i, mask := d.tokenTable.home(hash); slots[i] != 0; i = (i + 1) & mask {
		if uint32(slots[i]>>32) == hash {
			if index := uint32(slots[i]) - 1; d.name(index) == s {
				return index, true
			}
		}
	}
	return 0, false
}
