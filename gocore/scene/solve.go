package scene

import (
	"ovstage.dev/ovstage/gocore/memory"
)

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
func (p *pass) solve(n int) error {
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

func (p *pass) resetAt(at cell) bool {
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
