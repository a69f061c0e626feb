package stage

import (
	"slices"
	"unsafe"

	"ovstage/gocore/column"
	"ovstage/gocore/pathdict"
)

// postings lists, for each token that an attribute holds, the prims that hold it in the newest executed state. They are
// made when a filter asks, at some 40 ns a value, and thrown away by the next write to the attribute; in between a filter
// costs what it selects. Types and schemas are written when a scene is set up and asked for all the time.
type postings struct {
	version uint64 // the attribute's
	prims   []uint32
	runs    map[pathdict.Token]run
}

// run is a part of postings.prims.
type run struct{ start, n uint32 }

// holders returns the prims that hold a token.
func (p *postings) holders(token pathdict.Token) []uint32 {
	r := p.runs[token]
	return p.prims[r.start : r.start+r.n]
}

// postings returns those of an attribute, as of now.
func (s *Stage) postings(a *attribute) (*postings, error) {
	if a.postings != nil && a.postings.version == a.version {
		return a.postings, nil
	}
	holding := pairs{number: map[pathdict.Token]uint32{}}
	for _, c := range a.columns {
		if !s.holdsTokens(a, c.Schema()) {
			continue
		}
		collect := holding.collect
		if c.Schema().Array {
			collect = holding.collectArrays
		}
		if err := collect(c); err != nil {
			return nil, err
		}
	}
	a.postings = holding.sorted()
	a.postings.version = a.version
	return a.postings, nil
}

// pairs is who holds which token, in no order. Tokens get small numbers as they appear, so that they can be counted.
type pairs struct {
	numbers []uint32 // of the token of each pair
	prims   []uint32
	counts  []uint32 // by number
	number  map[pathdict.Token]uint32
	recent  [64]struct { // tokens are few and come again at once: most need no look into the map
		token  pathdict.Token
		number uint32
		known  bool
	}
}

func (p *pairs) add(token pathdict.Token, path uint32) {
	near := &p.recent[token%64]
	if !near.known || near.token != token {
		number, known := p.number[token]
		if !known {
			number = uint32(len(p.counts))
			p.number[token], p.counts = number, append(p.counts, 0)
		}
		near.token, near.number, near.known = token, number, true
	}
	p.counts[near.number]++
	p.numbers, p.prims = append(p.numbers, near.number), append(p.prims, path)
}

func (p *pairs) collect(c *bound) error {
	block, err := c.newest()
	if err != nil {
		return err
	}
	defer block.Release()
	alive := c.AllAlive(latest)
	p.grow(c.Rows())
	for row, token := range tokensIn(block.Bytes()[:c.Rows()*c.Width()]) {
		if alive.Has(row) {
			p.add(token, c.Path(row))
		}
	}
	return nil
}

func (p *pairs) collectArrays(c *bound) error {
	rows, total := c.Values(column.Interval(0, c.Rows()), latest), 0
	for _, values := range rows {
		total += len(values) / tokenSize
	}
	p.grow(total)
	for row, values := range rows {
		for _, token := range tokensIn(values) {
			p.add(token, c.Path(row))
		}
	}
	return nil
}

func (p *pairs) grow(n int) {
	p.numbers, p.prims = slices.Grow(p.numbers, n), slices.Grow(p.prims, n)
}

// sorted groups the pairs by token.
func (p *pairs) sorted() *postings {
	sorted := &postings{prims: make([]uint32, len(p.prims)), runs: make(map[pathdict.Token]run, len(p.counts))}
	starts, start := make([]uint32, len(p.counts)), uint32(0)
	for no, n := range p.counts {
		starts[no] = start
		start += n
	}
	for token, no := range p.number {
		sorted.runs[token] = run{starts[no], p.counts[no]}
	}
	for i, no := range p.numbers {
		sorted.prims[starts[no]] = p.prims[i]
		starts[no]++
	}
	return sorted
}

// tokensIn looks at bytes as tokens, which they were written as.
func tokensIn(bytes []byte) []pathdict.Token {
	return unsafe.Slice((*pathdict.Token)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/tokenSize)
}

const tokenSize = 8
