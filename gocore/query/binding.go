package query

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/invariants"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// Binding is the answer of one column to one list: the row of each listed prim. It stays true until rows are given up,
// because a prim keeps its row; only a binding with prims that had no row is resolved anew when rows were given out.
type Binding struct {
	list    *pathdict.List
	rows    column.Rows // row of each position; when some are missing, of each position that has one
	missing []uint32    // positions without a row, ascending
	grown   uint64      // rows that the column had ever given out when missing positions were looked up
	plan    *Plan       // for the shape it names
	inverse *inverse    // of the list of rows, once a small set was asked for
}

// Rows returns the rows of the listed prims that have one, in list order: of all of them when Missing is 0.
func (b *Binding) Rows() column.Rows { return b.rows }

// Missing is the number of listed positions without a row.
func (b *Binding) Missing() int { return len(b.missing) }

// Bindings caches the bindings of one column. The zero value is ready for use.
type Bindings struct {
	last  *Binding // the steady frame asks for the same list again
	all   map[*pathdict.List]*Binding
	order []*Binding // by age, for eviction
	held  int        // list positions that the cached bindings hold
	epoch uint64     // the column's when they were made

	// Resolved counts positions that were looked up one by one. It stands still in a steady frame.
	Resolved *uint64
}

// Of returns where the column holds the prims of the list, without adding rows.
func (c *Bindings) Of(col *column.Column, list *pathdict.List) (*Binding, error) {
	if c.epoch != col.Epoch() {
		c.Close()
		c.epoch = col.Epoch()
	}
	if b := c.last; b != nil && b.list == list && b.current(col) {
		b.mustBeTrue(col)
		return b, nil
	}
	if b := c.all[list]; b != nil {
		if b.current(col) {
			c.last = b
			return b, nil
		}
		c.drop(b)
	}
	b, err := c.resolve(col, list)
	if err != nil {
		return nil, err
	}
	c.add(col, b)
	return b, nil
}

// Growth is a list of which some prims are about to get a row. Everything that can fail has been done. Several lists may be
// prepared for one column before the first grows, if no prim without a row is in two of them.
type Growth struct {
	binding *Binding    // what is known of the others
	rows    column.Rows // theirs, with a reference: the binding may leave the cache before it grows
	added   []uint32    // path indices of the prims without a row, in list order
	index   memory.Block
}

// Prepare is Of for a write that will give rows to the prims that have none. It adds nothing: that is for Grow to do, before
// the column changes, or else Drop gives back what was prepared.
func (c *Bindings) Prepare(col *column.Column, list *pathdict.List) (Growth, error) {
	b, err := c.Of(col, list)
	if err != nil {
		return Growth{}, err
	}
	g := Growth{binding: b, rows: b.rows.Retain()}
	if len(b.missing) == 0 {
		return g, nil
	}
	paths := list.Indices()
	if len(b.missing) == len(paths) && list.Unique() {
		g.added = paths
		return g, nil
	}
	g.added = make([]uint32, len(b.missing))
	for i, position := range b.missing {
		g.added[i] = paths[position]
	}
	if !list.Unique() {
		g.added = distinct(g.added)
	}
	if len(g.added) < list.Len() {
		if g.index, err = memory.Alloc(4*list.Len(), memory.Indices); err != nil {
			g.Drop()
			return Growth{}, err
		}
	}
	return g, nil
}

// Drop gives up a growth that will not take place.
func (g Growth) Drop() {
	g.rows.Release()
	g.index.Release()
}

// Grow gives rows to the prims that have none and returns the binding of all; added lists their path indices.
func (c *Bindings) Grow(col *column.Column, g Growth) (b *Binding, added []uint32) {
	b, added = g.binding, g.added
	switch known := c.all[b.list]; {
	case len(b.missing) == 0 && known == nil: // it left the cache
		c.add(col, b) // with the growth's reference
		return b, nil
	case len(b.missing) == 0:
		g.rows.Release()
		return known, nil
	case !g.index.Valid():
		grown := &Binding{list: b.list, rows: col.Add(added)}
		c.replace(col, grown)
		return grown, added
	}
	defer g.rows.Release()
	paths := b.list.Indices()
	start, _ := col.Add(added).Run()
	rows := g.index.Uint32s(b.list.Len())
	b.Each(func(position int, row uint32) { rows[position] = row })
	if len(added) == len(b.missing) {
		for i, position := range b.missing {
			rows[position] = uint32(start + i)
		}
	} else {
		for _, position := range b.missing {
			rows[position] = uint32(col.Row(paths[position]))
		}
	}
	*c.Resolved += uint64(len(b.missing))
	grown := &Binding{list: b.list, rows: column.Indexed(g.index, b.list.Len())}
	c.replace(col, grown)
	return grown, added
}

// replace caches a binding in the place of what was known of its list.
func (c *Bindings) replace(col *column.Column, grown *Binding) {
	if known := c.all[grown.list]; known != nil {
		c.drop(known)
	}
	c.add(col, grown)
}

// resolve looks every listed prim up.
func (c *Bindings) resolve(col *column.Column, list *pathdict.List) (*Binding, error) {
	paths := list.Indices()
	b := &Binding{list: list, grown: col.Added()}
	if start := col.Run(paths); start >= 0 {
		b.rows = column.Run(start, len(paths))
		return b, nil
	}
	*c.Resolved += uint64(len(paths))
	if col.Rows() == 0 {
		b.missing = positions(0, len(paths))
		return b, nil
	}
	if err := col.PrepareRows(); err != nil {
		return nil, err
	}
	index, err := memory.Alloc(4*len(paths), memory.Indices)
	if err != nil {
		return nil, err
	}
	rows, n := index.Uint32s(len(paths)), 0
	for i, path := range paths {
		if row := col.Row(path); row >= 0 {
			rows[n] = uint32(row)
			n++
		} else {
			b.missing = append(b.missing, uint32(i))
		}
	}
	b.rows = column.Indexed(index, n)
	return b, nil
}

// Each calls f for every position that has a row, in order.
func (b *Binding) Each(f func(position int, row uint32)) {
	start, run := b.rows.Run()
	list, missing, k := b.rows.List(), b.missing, 0
	for position := range b.list.Len() {
		if len(missing) > 0 && int(missing[0]) == position {
			missing = missing[1:]
			continue
		}
		if run {
			f(position, uint32(start+k))
		} else {
			f(position, list[k])
		}
		k++
	}
}

// current reports whether the column still answers as b says.
func (b *Binding) current(col *column.Column) bool {
	return len(b.missing) == 0 || b.grown == col.Added()
}

// add caches a binding. What the cache holds stays a few times the column: lists that are new with every tick would else pile
// up.
func (c *Bindings) add(col *column.Column, b *Binding) {
	b.mustBeTrue(col)
	if c.all == nil {
		c.all = map[*pathdict.List]*Binding{}
	}
	c.all[b.list], c.last = b, b
	c.order = append(c.order, b)
	c.held += b.list.Len()
	for most := max(minPositions, 8*col.Rows()); len(c.order) > 1 && (len(c.order) > maxBindings || c.held > most); {
		c.drop(c.order[0])
	}
}

func (c *Bindings) drop(b *Binding) {
	if c.last == b {
		c.last = nil
	}
	delete(c.all, b.list)
	i := slices.Index(c.order, b)
	c.order = slices.Delete(c.order, i, i+1)
	c.held -= b.list.Len()
	b.release()
}

// Close gives the cached lists of rows back.
func (c *Bindings) Close() {
	for _, b := range c.order {
		b.release()
	}
	c.last, c.all, c.order, c.held = nil, nil, nil, 0
}

func (b *Binding) release() {
	b.rows.Release()
	b.plan.release()
	b.plan = nil
}

// distinct keeps the first of equal paths, in order.
func distinct(paths []uint32) []uint32 {
	seen := make(map[uint32]struct{}, len(paths))
	return slices.DeleteFunc(paths, func(path uint32) bool {
		_, again := seen[path]
		seen[path] = struct{}{}
		return again
	})
}

func positions(from, to int) []uint32 {
	list := make([]uint32, to-from)
	for i := range list {
		list[i] = uint32(from + i)
	}
	return list
}

// Draft returns a block of its own that starts, packed in list order, with the newest value of each listed prim at or below
// ordinal; a prim that has none gets zeros.
func (b *Binding) Draft(col *column.Column, ordinal uint64) (memory.Block, error) {
	if len(b.missing) == 0 {
		return col.Draft(b.rows, ordinal)
	}
	size := b.list.Len() * col.Width()
	block, err := col.Buffer(size, false)
	if err != nil {
		return block, err
	}
	if err := b.compose(col, block.Bytes()[:size], ordinal); err != nil {
		block.Release()
		return memory.Block{}, err
	}
	return block, nil
}

// compose writes the values into dst, zeros for the prims without a row.
func (b *Binding) compose(col *column.Column, dst []byte, ordinal uint64) error {
	width, held := col.Width(), b.rows.Len()
	if int(b.missing[0]) == held { // they are the last ones, as those of prims that come into being are
		clear(dst[held*width:])
		return col.Compose(dst[:held*width], b.rows, ordinal)
	}
	packed, err := memory.Alloc(held*width, memory.Maps)
	if err != nil {
		return err
	}
	defer packed.Release()
	if err := col.Compose(packed.Bytes(), b.rows, ordinal); err != nil {
		return err
	}
	clear(dst)
	memory.Copied(held * width)
	k := 0
	b.Each(func(position int, _ uint32) {
		copy(dst[position*width:(position+1)*width], packed.Bytes()[k*width:])
		k++
	})
	return nil
}

// mustBeTrue states that the column has the listed prims where the binding says.
func (b *Binding) mustBeTrue(col *column.Column) {
	if !invariants.Enabled {
		return
	}
	invariants.Check(b.rows.Len()+len(b.missing) == b.list.Len(),
		"%d rows and %d missing for %d prims", b.rows.Len(), len(b.missing), b.list.Len())
	invariants.Check(b.rows.End() <= col.Rows(), "row %d of %d is bound", b.rows.End()-1, col.Rows())
	b.Each(func(position int, row uint32) {
		invariants.Check(col.Path(int(row)) == b.list.Indices()[position],
			"row %d is bound to path %d, the column has path %d there", row, b.list.Indices()[position], col.Path(int(row)))
	})
}
