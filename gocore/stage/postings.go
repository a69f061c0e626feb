package stage

import (
	"slices"
	"unsafe"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/prims"
)

// postings answers, for each token that an attribute holds, which prims hold it in the newest executed state.
//
// They are made when a filter first asks, at some 40 ns a value. From then on a write or delete notes the prims that it
// touches, and the next filter looks those up anew: it costs what was touched and what it selects, not the column.
type postings struct {
	all     holders
	touched []uint32  // the prims of which all is out of date, each once
	changed prims.Set // the same as a set
	recent  *holders  // of the touched prims; nil when one was touched since
}

// holders is the prims that hold each token.
type holders struct {
	prims []uint32
	runs  map[pathdict.Token]run
}

// run is a part of holders.prims.
type run struct{ start, n uint32 }

func (h *holders) of(token pathdict.Token) []uint32 {
	r := h.runs[token]
	return h.prims[r.start : r.start+r.n]
}

// of returns the prims that hold a token. The list is not the caller's.
func (p *postings) of(token pathdict.Token) []uint32 {
	list := p.all.of(token)
	if p.recent == nil {
		return list
	}
	current := make([]uint32, 0, len(list))
	for _, path := range list {
		if !p.changed.Has(path) {
			current = append(current, path)
		}
	}
	return append(current, p.recent.of(token)...)
}

// minTouched is the number of touched prims below which nothing is worth to be made anew for them.
const minTouched = 16

// touch notes that rows of a column were written or deleted. It is false where the postings cost less when they are made anew.
func (p *postings) touch(c *column.Column, rows column.Rows) bool {
	if rows.Len() >= minTouched && 4*rows.Len() > len(p.all.prims) {
		return false
	}
	p.recent = nil
	rows.Each(func(_, row int) {
		if path := c.Path(row); !p.changed.Has(path) {
			p.touched = append(p.touched, path)
			p.changed.Add(path)
		}
	})
	return len(p.touched) < minTouched || 4*len(p.touched) <= len(p.all.prims) // prims may come and go while no filter asks
}

// fold makes the touched prims a part of all.
func (p *postings) fold() {
	folded := holders{make([]uint32, 0, len(p.all.prims)+len(p.recent.prims)), make(map[pathdict.Token]run, len(p.all.runs))}
	take := func(token pathdict.Token) {
		start := len(folded.prims)
		folded.prims = append(folded.prims, p.of(token)...)
		if n := len(folded.prims) - start; n > 0 {
			folded.runs[token] = run{uint32(start), uint32(n)}
		}
	}
	for token := range p.all.runs {
		take(token)
	}
	for token := range p.recent.runs {
		if _, taken := folded.runs[token]; !taken {
			take(token)
		}
	}
	*p = postings{all: folded}
}

// pairs says which prim holds which token, in no order. Tokens get small numbers as they appear, so that they can be counted.
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

// collect adds what rows of a column hold in the newest state.
func (p *pairs) collect(c *column.Column, rows column.Rows) error {
	if c.Schema().Array {
		values, total := c.Values(rows, column.Latest), 0
		for _, row := range values {
			total += len(row) / tokenSize
		}
		p.grow(total)
		rows.Each(func(i, row int) {
			for _, token := range tokensIn(values[i]) {
				p.add(token, c.Path(row))
			}
		})
		return nil
	}
	block, err := memory.Alloc(rows.Len()*c.Width(), memory.Columns)
	if err != nil {
		return err
	}
	defer block.Release()
	packed := block.Bytes()[:rows.Len()*c.Width()]
	if err := c.Compose(packed, rows, column.Latest); err != nil {
		return err
	}
	alive, tokens := c.Alive(rows, column.Latest), tokensIn(packed)
	p.grow(rows.Len())
	rows.Each(func(i, row int) {
		if alive[i] {
			p.add(tokens[i], c.Path(row))
		}
	})
	return nil
}

func (p *pairs) grow(n int) {
	p.numbers, p.prims = slices.Grow(p.numbers, n), slices.Grow(p.prims, n)
}

// sorted groups the pairs by token.
func (p *pairs) sorted() holders {
	sorted := holders{prims: make([]uint32, len(p.prims)), runs: make(map[pathdict.Token]run, len(p.counts))}
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
