package bitset

import (
	"math/bits"
	"slices"
)

// Sparse is a set that costs what it holds, however far it reaches: two levels above its words say which of them have a
// member. Emptied and filled again it needs no new memory. The zero value is the empty set; Reset says how far it reaches.
type Sparse struct {
	words Set // the members
	sums  Set // the words that have one
	tops  Set // the words of sums that have one
	count int
}

// Reset empties the set and makes space for numbers below n. It costs what the set held, but for the first time that it
// reaches so far.
func (s *Sparse) Reset(n int) {
	s.empty()
	if len(s.words) < Words(n) {
		s.words = New(n + n/4) // columns grow, and ask again
		s.sums = New(len(s.words))
		s.tops = New(len(s.sums))
	}
}

func (s *Sparse) empty() {
	if s.count == 0 {
		return
	}
	s.tops.Each(func(at int) {
		for sum := s.sums[at]; sum != 0; sum &= sum - 1 {
			s.words[64*at+bits.TrailingZeros64(sum)] = 0
		}
		s.sums[at] = 0
	})
	clear(s.tops)
	s.count = 0
}

// Add puts i into the set.
func (s *Sparse) Add(i int) {
	at, bit := uint(i)/64, uint64(1)<<(uint(i)%64)
	word := s.words[at]
	if word&bit != 0 {
		return
	}
	if word == 0 {
		s.sums.Add(int(at))
		s.tops.Add(int(at / 64))
	}
	s.words[at] = word | bit
	s.count++
}

// AddRange adds the numbers in [from, to), a word at a time.
func (s *Sparse) AddRange(from, to int) {
	if from >= to {
		return
	}
	s.count += to - from - s.CountIn(from, to)
	for _, level := range []Set{s.words, s.sums, s.tops} {
		level.AddRange(from, to)
		from, to = from/64, Words(to)
	}
}

// Has reports whether i is in the set.
func (s *Sparse) Has(i int) bool { return s.words.Has(i) }

// Count is how many numbers are in the set. It costs nothing.
func (s *Sparse) Count() int { return s.count }

// CountIn is how many numbers in [from, to) are in the set.
func (s *Sparse) CountIn(from, to int) (n int) {
	if s.dense(from, to) {
		return s.words.CountIn(from, to)
	}
	s.eachWord(from, to, func(_ int, word uint64) { n += bits.OnesCount64(word) })
	return n
}

// AnyIn reports whether a number in [from, to) is in the set.
func (s *Sparse) AnyIn(from, to int) bool {
	from, to = max(from, 0), s.words.end(to)
	if from >= to || s.count == 0 {
		return false
	}
	if s.words[from/64]&within(from, to) != 0 {
		return true
	}
	at := s.following(from/64 + 1)
	return 64*at < to && s.words[at]&within(64*at, to) != 0
}

// Each calls visit for every number in the set, ascending.
func (s *Sparse) Each(visit func(i int)) { s.EachIn(0, 64*len(s.words), visit) }

// EachIn calls visit for every number in [from, to) that is in the set, ascending.
func (s *Sparse) EachIn(from, to int, visit func(i int)) {
	if s.dense(from, to) {
		s.words.EachIn(from, to, visit)
		return
	}
	s.eachWord(from, to, func(first int, word uint64) {
		for ; word != 0; word &= word - 1 {
			visit(first + bits.TrailingZeros64(word))
		}
	})
}

// Set is the members as a Set of its own.
func (s *Sparse) Set() Set { return slices.Clone(s.words) }

// dense reports whether to go through all words of [from, to) costs no more than what the set holds.
func (s *Sparse) dense(from, to int) bool { return s.count > 0 && Words(to-from) <= s.count }

// eachWord calls visit for the words that have a member in [from, to), without what they have beyond.
func (s *Sparse) eachWord(from, to int, visit func(first int, word uint64)) {
	if s.count == 0 {
		return
	}
	from, to = max(from, 0), s.words.end(to)
	for at := s.following(from / 64); 64*at < to; at = s.following(at + 1) {
		if word := s.words[at] & within(max(from, 64*at), to); word != 0 {
			visit(64*at, word)
		}
	}
}

// following is the index of the first word from at on that has a member, or how many words there are.
func (s *Sparse) following(at int) int {
	if at >= len(s.words) {
		return len(s.words)
	}
	if rest := s.sums[at/64] >> (at % 64); rest != 0 {
		return at + bits.TrailingZeros64(rest)
	}
	sum := at/64 + 1
	for top := sum / 64; top < len(s.tops); top++ {
		rest := s.tops[top]
		if top == sum/64 {
			rest &= all << (sum % 64)
		}
		if rest != 0 {
			sum = 64*top + bits.TrailingZeros64(rest)
			return 64*sum + bits.TrailingZeros64(s.sums[sum])
		}
	}
	return len(s.words)
}
