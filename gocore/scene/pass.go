package scene

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

// pass is a Compute on its way.
type pass struct {
	scene *Scene
	tx    stage.Tx
	tree  *tree
	to    uint64
	all   bool // every transform is computed anew: there is no earlier pass to build on

	locals, resets []input
	sealed         bool           // the world transforms go into a sealed state
	world          *column.Column // nil before the first world transform
	others         []*column.Column
	known          input    // the world transforms as they were, and which of them a write may have changed
	before         []matrix // their rows

	block  memory.Block
	after  []matrix // the transforms that this pass computed
	solved []int32  // the node of each of them
	fresh  int      // how many of them have no row
}

// open looks at everything that the pass needs.
func (p *pass) open(from uint64) (err error) {
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
		if failure = p.world.PrepareRows(); failure != nil {
			return p.exhausted(failure)
		}
		p.before = matrices(p.known.bytes)
		s.tree.compare(&p.known, s.world)
	}
	if p.locals, err = s.look(p.tx, s.local, at, transforms); err == nil {
		p.resets, err = s.look(p.tx, s.reset, at, flags)
	}
	for _, reset := range p.resets {
		if failure := reset.column.PrepareRows(); failure != nil {
			return p.exhausted(failure)
		}
	}
	return err
}

// moment says what a pass reads: values as of an ordinal. What goes into a sealed state is made of sealed values.
type moment struct {
	ordinal uint64
	sealed  bool
	built   *tree // the pass that is built on, nil for none
}

// look opens the columns of an attribute that hold anything, which must be what was expected.
func (s *Scene) look(tx stage.Tx, name pathdict.Token, at moment, expected expectation) ([]input, error) {
	columns, floor, err := tx.Columns(name)
	if err != nil {
		return nil, err
	}
	if at.sealed {
		at.ordinal = min(at.ordinal, floor)
	}
	var inputs []input
	for _, c := range columns {
		one, failure := open(c, at.ordinal)
		if failure != nil {
			closeAll(inputs)
			return nil, failf(stage.OutOfMemory, "attribute %q: %s", tx.Text(name), failure)
		}
		if one.alive.Count() == 0 {
			one.copy.Release()
			continue
		}
		at.built.compare(&one, name)
		inputs = append(inputs, one)
		if !expected.by(c.Schema()) {
			err := failf(stage.OpFailed, "attribute %q of prim %s holds %s, expected %s; delete it and write it anew",
				tx.Text(name), tx.Path(one.anyPrim()), c.Schema(), expected.text)
			closeAll(inputs)
			return nil, err
		}
	}
	return inputs, nil
}

// home chooses the column that takes the world transforms; nil where a column has to be made. Several columns may have the right
// type and differ by role alone. A column of the usual role that holds values is chosen first, then any column that holds
// values, then an empty column of the usual role. An empty column of another role is never chosen.
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

// schema is the schema of the world transforms.
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
func (p *pass) checkOthers() error {
	for _, c := range p.others {
		alive := c.AllAlive(column.Latest)
		if failure := c.PrepareRows(); failure != nil {
			return p.exhausted(failure)
		}
		for i := range p.tree.nodes {
			if row := c.Row(p.tree.nodes[i].path); row >= 0 && alive.Has(row) {
				return failf(stage.OpFailed, "attribute %q of prim %s holds %s, expected %s; delete it first",
					WorldTransform, p.tx.Path(p.tree.nodes[i].path), c.Schema(), p.schema())
			}
		}
	}
	return nil
}

func (p *pass) exhausted(failure error) error {
	return failf(stage.OutOfMemory, "attribute %q: %s", WorldTransform, failure)
}
