package pathdict

import (
	"hash/maphash"
	"sync/atomic"
)

// Tokens interns strings into out, entry by entry. When an entry is refused, nothing is interned; when it fails at all, out
// is untouched.
func (d *Dictionary) Tokens(strings []string, out []Token) error {
	if err := checkRoom(len(out), len(strings)); err != nil {
		return err
	}
	if err := checkTokens(strings); err != nil {
		return err
	}
	in := d.borrow(len(strings))
	defer d.giveBack(in)
	if err := in.tokens(strings); err != nil {
		return err
	}
	for i, index := range in.indices {
		out[i] = Token(d.handle(index))
	}
	return nil
}

// Token interns one string.
func (d *Dictionary) Token(s string) (Token, error) {
	one, token := [1]string{s}, [1]Token{}
	err := d.Tokens(one[:], token[:])
	return token[0], err
}

// TokenString returns the text of a token as a view of the dictionary's memory: a NUL byte follows it, and it is valid until
// Close. Token 0 is "". The second result is false for a handle that this dictionary did not make.
func (d *Dictionary) TokenString(t Token) (string, bool) {
	if t == 0 {
		return "", true
	}
	index := d.index(uint64(t))
	if !d.tokens.has(index) {
		return "", false
	}
	at := d.span(uint32(index))
	if at == 0 { // withdrawn
		return "", false
	}
	return d.text.at(at), true
}

func (d *Dictionary) span(token uint32) span {
	return span(atomic.LoadUint64((*uint64)(d.tokens.at(token))))
}

func (d *Dictionary) name(token uint32) string { return d.text.at(d.span(token)) }

// token returns the index of a valid token string and adds the token when it is new.
func (in *interner) token(s string) (uint32, error) {
	d := in.d
	hash := d.tokenHash(s)
	index, known := d.findToken(hash, s)
	if known && !d.onTrial(index) {
		return index, nil
	}
	if in.upgrade() {
		index, known = d.findToken(hash, s)
	}
	if known {
		delete(d.trials, index) // it stays
		return index, nil
	}
	return d.addToken(hash, s)
}

// tokenHash gives strings that differ in the last byte only, such as numbered names, slots close to each other: a batch of
// new names then fills the table cache line by cache line, which halves the time of a batch.
func (d *Dictionary) tokenHash(s string) uint32 {
	last := len(s) - 1
	return near(uint32(maphash.String(d.seed, s[:last])), uint32(s[last]))
}

func (d *Dictionary) findToken(hash uint32, s string) (uint32, bool) {
	return d.tokenTable.find(hash, func(index uint32) bool { return d.name(index) == s })
}

func (d *Dictionary) addToken(hash uint32, s string) (uint32, error) {
	if err := d.checkGrowth(d.tokens.length); err != nil {
		return 0, err
	}
	if err := d.tokenTable.reserve(1); err != nil {
		return 0, err
	}
	if err := d.tokens.reserve(); err != nil {
		return 0, err
	}
	at, err := d.text.add(s)
	if err != nil {
		return 0, err
	}
	var index uint32
	if last := len(d.withdrawn) - 1; last >= 0 {
		index, d.withdrawn = d.withdrawn[last], d.withdrawn[:last]
		atomic.StoreUint64((*uint64)(d.tokens.at(index)), uint64(at))
	} else {
		index = d.tokens.push(at)
	}
	d.tokenTable.insert(hash, index)
	return index, nil
}
