package scene

import (
	"cmp"
	"slices"

	"ovstage/gocore/column"
	"ovstage/gocore/memory"
	"ovstage/gocore/pathdict"
	"ovstage/gocore/stage"
	"ovstage/gocore/tensor"
)

// Model is a way to compute world transforms.
type Model uint32

// The models. Only the first needs no GPU.
const (
	CPUIncremental Model = 1
	GPUIncremental Model = 2
	GPUGlobal      Model = 3
)

func (m Model) String() string {
	switch m {
	case CPUIncremental:
		return "CPU_INCREMENTAL"
	case GPUIncremental:
		return "GPU_INCREMENTAL"
	case GPUGlobal:
		return "GPU_GLOBAL"
	}
	return "unknown"
}

// Compute brings the world transform of every prim with a local one up to date: world = local * world of the nearest ancestor
// that has a transform, or world = local where the prim says so or has no such ancestor. Local transforms are those as of from,
// world transforms are written at to.
//
// An ordinal that is not sealed takes them like any write, and local transforms count whether they are sealed or not: a
// client that computes before it seals never shows one without the other. A sealed one gets a new version of its state, the
// one exception to sealing, made of sealed local transforms only; groups that readers hold keep theirs.
//
// Only what changed is written, so that ranges report the prims that moved. Rows are added where a prim had none.
//
// # Cost
//
// As long as no transform comes or goes, a pass over a sealed ordinal costs a byte or two for each prim and a product of
// matrices for each below a change.
func (s *Scene) Compute(model Model, from, to uint64) (op uint64, err *stage.Error) {
	switch model {
	case CPUIncremental:
		return s.stage.Submit(func(tx stage.Tx) *stage.Error { return s.compute(tx, from, to) })
	case GPUIncremental, GPUGlobal:
		return s.stage.Submit(func(stage.Tx) *stage.Error {
			return failf(stage.OpFailed, "model %s (%d) needs CUDA, which is not loaded; use CPU_INCREMENTAL (1)", model, model)
		})
	}
	return 0, failf(stage.InvalidArgument,
		"model %d is none, expected CPU_INCREMENTAL (1), GPU_INCREMENTAL (2), GPU_GLOBAL (3) or RUNTIME_DEFAULT (4)", model)
}

func (s *Scene) compute(tx stage.Tx, from, to uint64) *stage.Error {
	p := pass{scene: s, tx: tx, to: to}
	defer p.close()
	if err := p.open(from); err != nil {
		return err
	}
	if !s.tree.fits(p.locals, p.resets, p.world) {
		s.tree = grow(tx, p.locals, p.resets, p.world)
		p.all = true
	}
	p.tree = s.tree
	if err := p.checkOthers(); err != nil {
		return err
	}
	if err := p.solve(p.mark()); err != nil {
		return err
	}
	return p.finish()
}

// pass is one computation.
type pass struct {
	scene *Scene
	tx    stage.Tx
	tree  *tree
	to    uint64
	all   bool // nothing is known of before

	locals, resets []input
	sealed         bool           // the world transforms go into a sealed state
	world          *column.Column // nil before the first world transform
	others         []*column.Column
	known          input    // the world transforms as of before, and which of them somebody else may have changed
	before         []matrix // their rows

	block  memory.Block
	after  []matrix // the transforms that this pass computed
	solved []int32  // and whose they are, by node
	fresh  int      // how many of them have no row
}

// open looks at everything that the pass needs.
func (p *pass) open(from uint64) (err *stage.Error) {
	s := p.scene
	columns, floor, err := p.tx.Columns(s.world)
	if err != nil {
		return err
	}
	p.world = home(columns, p.to)
	p.others = slices.DeleteFunc(columns, func(c *column.Column) bool { return c == p.world })
	p.sealed = p.to <= floor
	at := moment{ordinal: from, sealed: p.sealed, built: s.tree}
	if p.world != nil {
		if state := p.world.Sealed(); p.sealed && p.to < state.Ordinal() {
			return failf(stage.OpFailed, "output ordinal %d is older than the world transforms, which are those of ordinal %d; compute at that or a later one",
				p.to, state.Ordinal())
		}
		var failure error
		if p.known, failure = open(p.world, p.to); failure != nil {
			return p.exhausted(failure)
		}
		p.before = matrices(p.known.bytes)
		p.known.since(s.tree, s.world)
	}
	if p.locals, err = s.look(p.tx, s.local, at, transforms); err == nil {
		p.resets, err = s.look(p.tx, s.reset, at, flags)
	}
	return err
}

// home chooses the column of the world transforms, nil for one that has to be made. Columns may differ by role alone: one
// that holds something goes before one that does not, and only that of the usual role may hold nothing.
func home(columns []*column.Column, ordinal uint64) (found *column.Column) {
	for _, c := range columns {
		if !transforms.by(c.Schema()) {
			continue
		}
		role := c.Schema().Semantic
		usual, holds := role == tensor.SemanticMatrix || role == tensor.SemanticNone, c.AllAlive(ordinal).Count() > 0
		switch {
		case usual && holds:
			return c
		case holds || usual && found == nil:
			found = c
		}
	}
	return found
}

// schema is that of the world transforms.
func (p *pass) schema() column.Schema {
	if p.world != nil && p.world.Schema().Semantic != tensor.SemanticNone {
		return p.world.Schema()
	}
	return column.Schema{DType: matrixType, Semantic: tensor.SemanticMatrix}
}

func (p *pass) close() {
	closeAll(p.locals)
	closeAll(p.resets)
	p.known.copy.Release()
	p.block.Release()
}

// checkOthers refuses a world transform of another type or role.
func (p *pass) checkOthers() *stage.Error {
	for _, c := range p.others {
		alive := c.AllAlive(latest)
		for i := range p.tree.nodes {
			if row := c.Row(p.tree.nodes[i].path); row >= 0 && alive.Has(row) {
				return failf(stage.OpFailed, "attribute %q of prim %s holds %s, expected %s; delete it first",
					WorldTransform, p.tx.Path(p.tree.nodes[i].path), c.Schema(), p.schema())
			}
		}
	}
	return nil
}

// Slots of nodes. Others are positions in pass.after.
const (
	clean = -1 // its world transform is as before
	dirty = -2 // may have changed
)

// mark finds what may have changed and returns how many that are.
func (p *pass) mark() (n int) {
	slots := p.tree.slots
	for i := range p.tree.nodes {
		node := &p.tree.nodes[i]
		slots[i] = clean
		if p.all || node.world < 0 || node.parent >= 0 && slots[node.parent] == dirty || p.known.changed(node.world) ||
			p.locals[node.local.input].changed(node.local.row) || node.reset.row >= 0 && p.resets[node.reset.input].changed(node.reset.row) {
			slots[i] = dirty
			n++
		}
	}
	return n
}

// solve computes the n transforms that are marked, and keeps those that did change.
func (p *pass) solve(n int) *stage.Error {
	if n == 0 {
		return nil
	}
	var failure error
	if p.world != nil {
		p.block, failure = p.world.Buffer(n*matrixSize, false)
	} else {
		p.block, failure = memory.Alloc(n*matrixSize, memory.Columns)
	}
	if failure != nil {
		return p.exhausted(failure)
	}
	p.after, p.solved = matrices(p.block.Bytes()), make([]int32, 0, n)
	local := make([][]matrix, len(p.locals))
	for i := range p.locals {
		local[i] = matrices(p.locals[i].bytes)
	}
	slots := p.tree.slots
	for i := range p.tree.nodes {
		if slots[i] != dirty {
			continue
		}
		node, result := &p.tree.nodes[i], &p.after[len(p.solved)]
		own := &local[node.local.input][node.local.row]
		if node.parent < 0 || p.resetAt(node.reset) {
			*result = *own
		} else {
			result.multiply(own, p.worldOf(node.parent))
		}
		if p.stands(node.world, result) {
			slots[i] = clean
			continue
		}
		if node.world < 0 {
			p.fresh++
		}
		slots[i] = int32(len(p.solved))
		p.solved = append(p.solved, int32(i))
	}
	return nil
}

func (p *pass) resetAt(at place) bool {
	return at.row >= 0 && p.resets[at.input].bytes[at.row] != 0
}

// worldOf is the world transform of a node that was solved before.
func (p *pass) worldOf(node int32) *matrix {
	if slot := p.tree.slots[node]; slot >= 0 {
		return &p.after[slot]
	}
	return &p.before[p.tree.nodes[node].world]
}

// stands reports whether a row holds this value already.
func (p *pass) stands(row int32, value *matrix) bool {
	return row >= 0 && p.known.alive.Has(int(row)) && p.before[row].same(value)
}

// finish writes the transforms and notes what the next pass can build on.
func (p *pass) finish() *stage.Error {
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

// write hands the transforms over: one record for the rows that exist, one for those that are new.
func (p *pass) write() *stage.Error {
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

func (p *pass) rewrite(nodes []int32) *stage.Error {
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

// create gives rows to prims, in the order in which their local transforms lie: a client whose list is served as it is by one
// column is by the other.
func (p *pass) create(nodes []int32) *stage.Error {
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

func (p *pass) exhausted(failure error) *stage.Error {
	return failf(stage.OutOfMemory, "attribute %q: %s", WorldTransform, failure)
}
