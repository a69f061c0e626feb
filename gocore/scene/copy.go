package scene

import (
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// clone is a Clone on its way.
type clone struct {
	dict    *pathdict.Dictionary
	tx      stage.Tx
	source  string
	targets []string
	known   bool // the source is interned; a path that is not holds nothing
	from    uint32
	onto    []uint32
	ordinal uint64

	parts []copied
	moves moves
	made  []stage.Creation
}

// copied is what the source holds in one column.
type copied struct {
	name   pathdict.Token
	column *column.Column
	rows   column.Rows // ascending
}

// copy makes the new values, which no column has yet.
func (c *clone) copy() error {
	if err := c.plan(); err != nil {
		return err
	}
	for _, part := range c.parts {
		made := stage.Creation{Attribute: part.name, Schema: part.column.Schema(), Prims: c.prims(part)}
		copyPart := c.copyFixed
		if made.Schema.Array {
			copyPart = c.copyArrays
		}
		err := copyPart(part, &made)
		c.made = append(c.made, made)
		if err != nil {
			return err
		}
	}
	return nil
}

// plan finds all paths that have to move, and interns the paths that they become.
func (c *clone) plan() error {
	m := &c.moves
	m.dict, m.from, m.known = c.dict, c.from, []bool{true}
	for _, part := range c.parts {
		part.rows.Each(func(_, row int) { m.add(part.column.Path(row)) })
		if pathStride(part.column.Schema()) == 0 {
			continue
		}
		for _, values := range part.column.Values(part.rows, c.ordinal) {
			m.addTargets(idsIn(values, part.column.Schema()))
		}
	}
	m.slot = make([]int32, len(m.known))
	for i, known := range m.known {
		if known {
			m.slot[i] = int32(len(m.paths))
			m.paths = append(m.paths, m.from+uint32(i))
		}
	}
	var err error
	if m.to, err = m.dict.Graft(m.from, m.paths, c.onto); err != nil {
		return err
	}
	return m.graftProperties(c.onto)
}

// prims lists the prims that get the values: target by target, in the order of the source's rows.
func (c *clone) prims(part copied) []uint32 {
	prims := make([]uint32, 0, len(c.onto)*part.rows.Len())
	for k := range c.onto {
		part.rows.Each(func(_, row int) { prims = append(prims, c.moves.of(k, part.column.Path(row))) })
	}
	return prims
}

func (c *clone) copyFixed(part copied, made *stage.Creation) (err error) {
	size := part.rows.Len() * part.column.Width()
	if made.Block, err = memory.Alloc(len(c.onto)*size, memory.Columns); err != nil {
		return err
	}
	bytes := made.Block.Bytes()[:len(c.onto)*size]
	if err := part.column.Compose(bytes[:size], part.rows, c.ordinal); err != nil {
		return err
	}
	repeat(bytes, size)
	return nil
}

// repeat fills bytes with copies of the first size of them.
func repeat(bytes []byte, size int) {
	for done := size; done < len(bytes); done *= 2 {
		copy(bytes[done:], bytes[:done])
	}
	memory.Copied(len(bytes) - size)
}

// copyArrays stores the values once and lets every target point at them; paths are stored for each target.
func (c *clone) copyArrays(part copied, made *stage.Creation) (err error) {
	values, total := part.column.Values(part.rows, c.ordinal), 0
	for _, v := range values {
		total += len(v)
	}
	times := 1
	if pathStride(made.Schema) > 0 {
		times = len(c.onto)
	}
	if made.Block, err = memory.Alloc(len(made.Prims)*column.SpanSize, memory.Columns); err != nil {
		return err
	}
	if made.Arena.Block, err = memory.Alloc(times*total, memory.Columns); err != nil {
		return err
	}
	spans, arena := column.Spans(made.Block, len(made.Prims)), made.Arena.Block.Bytes()
	for k := range times {
		for i, v := range values {
			at := made.Arena.Used
			spans[k*len(values)+i] = column.Span{Offset: uint64(at), Length: uint64(len(v))}
			made.Arena.Used += copy(arena[at:], v)
			c.moves.move(k, idsIn(arena[at:made.Arena.Used], made.Schema))
		}
	}
	memory.Copied(made.Arena.Used)
	if times == 1 {
		repeat(made.Block.Bytes()[:len(made.Prims)*column.SpanSize], len(values)*column.SpanSize)
	}
	return nil
}
