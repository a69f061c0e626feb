package pathdict

import (
	"hash/maphash"
	"sync/atomic"
)

// Tokens interns strings into out, entry by entry, to stay. When an entry is refused, nothing is interned; when it fails at
// all, out is untouched.
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
		out[i] = d.tokenAt(index)
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
// Close; for a token that does not Stay, as long as something names it. Token 0 is "". The second result is false for a handle
// that this dictionary did not make, or has dropped.
func (d *Dictionary) TokenString(t Token) (string, bool) {
	if t == 0 {
		return "", true
	}
	index, ok := d.tokenIndex(t)
	if !ok {
		return "", false
	}
	at := d.span(index)
	if at == 0 { // withdrawn
		return "", false
	}
	return d.text.at(at), true
}

// Stay makes a token one that no compaction drops. It is false for a handle that this dictionary did not make, or has dropped.
func (d *Dictionary) Stay(t Token) bool {
	if t == 0 {
		return true
	}
	if index, ok := d.tokenIndex(t); ok && d.tokenPins.has(index) {
		return true
	}
	d.names.RLock()
	defer d.names.RUnlock()
	index, ok := d.tokenIndex(t)
	if !ok || d.span(index) == 0 {
		return false
	}
	if !d.onTrial(index) { // the call that tries it decides
		d.tokenPins.set(index)
	}
	return true
}

func (d *Dictionary) span(token uint32) span {
	return span(atomic.LoadUint64((*uint64)(d.tokens.at(token))))
}

func (d *Dictionary) name(token uint32) string { return d.text.at(d.span(token)) }

// token returns the index of a valid token string and adds the token when it is new. A compaction that is under way leaves it.
func (in *interner) token(s string) (index uint32, err error) {
	d := in.d
	hash := d.tokenHash(s)
	index, known := d.findToken(hash, s)
	if !known || d.onTrial(index) {
		if in.upgrade() {
			if in.stale() {
				return 0, errStale
			}
			index, known = d.findToken(hash, s)
		}
		if known {
			delete(d.trials, index)
		} else if index, err = d.addToken(hash, s); err != nil {
			return 0, err
		}
	}
	if in.named != nil {
		in.named.tokens.set(index)
	}
	return index, nil
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
	if err := d.tokenPins.reach(d.tokens.length); err != nil {
		return 0, err
	}
	at, err := d.text.add(s)
	if err != nil {
		return 0, err
	}
	var index uint32
	if last := len(d.withdrawn) - 1; last >= 0 {
		index, d.withdrawn = d.withdrawn[last], d.withdrawn[:last]
		if d.tokenAges.of(index) == noAge {
			d.tokenAges.set(index, d.age.Load())
		}
		atomic.StoreUint64((*uint64)(d.tokens.at(index)), uint64(at))
	} else {
		index = d.tokens.push(at)
	}
	d.tokenTable.insert(hash, index)
	return index, nil
}

// dropToken takes out a token. Its index is for another.
func (d *Dictionary) dropToken(index uint32) {
	at := d.span(index)
	d.tokenTable.remove(d.tokenHash(d.text.at(at)), index)
	atomic.StoreUint64((*uint64)(d.tokens.at(index)), 0)
	d.text.takeBack(at)
	d.withdrawn = append(d.withdrawn, index)
}
