package scene

import (
	"cmp"
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// write hands the transforms over: one record for the rows that exist, one for those that are new.
func (p *pass) write() error {
	existing, fresh := p.solved, []int32(nil)
	if p.fresh > 0 {
		hasRow := func(i int32) bool { return p.tree.nodes[i].world >= 0 }
		fresh = slices.DeleteFunc(slices.Clone(p.solved), hasRow)
		existing = slices.DeleteFunc(p.solved, func(i int32) bool { return !hasRow(i) })
	}
	if err := p.rewrite(existing); err != nil {
		return err
	}
	return p.create(fresh)
}

func (p *pass) rewrite(nodes []int32) error {
	if len(nodes) == 0 {
		return nil
	}
	index, failure := memory.Alloc(4*len(nodes), memory.Indices)
	if failure != nil {
		return p.exhausted(failure)
	}
	for k, row := 0, index.Uint32s(len(nodes)); k < len(nodes); k++ {
		row[k] = uint32(p.tree.nodes[nodes[k]].world)
	}
	rows := column.Indexed(index, len(nodes))
	defer rows.Release()
	block := p.block
	if p.fresh == 0 {
		p.block = memory.Block{} // as it is
	} else if block, failure = p.gather(nodes); failure != nil {
		return p.exhausted(failure)
	}
	p.tx.Rewrite(p.scene.world, p.world, rows, block, p.to)
	return nil
}

// create gives rows to prims, in the order of the rows of their local transforms: a list of prims that one of the two columns
// serves as a slice is a slice of the other too.
func (p *pass) create(nodes []int32) error {
	if len(nodes) == 0 {
		return nil
	}
	slices.SortFunc(nodes, func(a, b int32) int {
		x, y := p.tree.nodes[a].local, p.tree.nodes[b].local
		return cmp.Or(cmp.Compare(x.input, y.input), cmp.Compare(x.row, y.row))
	})
	block, failure := p.gather(nodes)
	if failure != nil {
		return p.exhausted(failure)
	}
	prims := make([]uint32, len(nodes))
	for k, i := range nodes {
		prims[k] = p.tree.nodes[i].path
	}
	schema := p.schema()
	if err := p.tx.Create(p.to, stage.Creation{Attribute: p.scene.world, Schema: schema, Prims: prims, Block: block}); err != nil {
		return err
	}
	columns, _, err := p.tx.Columns(p.scene.world)
	if err != nil {
		return err
	}
	world := columns[slices.IndexFunc(columns, func(c *column.Column) bool { return c.Schema() == schema })]
	for _, i := range nodes {
		p.tree.nodes[i].world = int32(world.Row(p.tree.nodes[i].path))
	}
	p.tree.world = partOf(world)
	return nil
}

// gather packs the transforms of nodes.
func (p *pass) gather(nodes []int32) (memory.Block, error) {
	block, err := memory.Alloc(len(nodes)*matrixSize, memory.Columns)
	if err != nil {
		return block, err
	}
	packed := matrices(block.Bytes())
	for k, i := range nodes {
		packed[k] = p.after[p.tree.slots[i]]
	}
	memory.Copied(len(nodes) * matrixSize)
	return block, nil
}

// finish writes the transforms and notes what the next pass can build on.
func (p *pass) finish() error {
	if err := p.write(); err != nil {
		p.tree.settled = false
		return err
	}
	if !p.sealed {
		return nil // what is sealed is as it was
	}
	old := func(in input) bool { return !in.newest }
	p.tree.settled = !slices.ContainsFunc(p.locals, old) && !slices.ContainsFunc(p.resets, old)
	for _, name := range []pathdict.Token{p.scene.local, p.scene.reset, p.scene.world} {
		_, p.tree.floors[name], _ = p.tx.Columns(name)
	}
	return nil
}
