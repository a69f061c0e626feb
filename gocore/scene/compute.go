package scene

import (
	"ovstage.dev/ovstage/gocore/stage"
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
func (s *Scene) Compute(model Model, from, to uint64) (op uint64, err error) {
	switch model {
	case CPUIncremental:
		return s.stage.Submit(func(tx stage.Tx) error { return s.compute(tx, from, to) })
	case GPUIncremental, GPUGlobal:
		return s.stage.Submit(func(stage.Tx) error {
			return failf(stage.OpFailed, "model %s (%d) needs CUDA, which is not loaded; use CPU_INCREMENTAL (1)", model, model)
		})
	}
	return 0, failf(stage.InvalidArgument,
		"model %d is none, expected CPU_INCREMENTAL (1), GPU_INCREMENTAL (2), GPU_GLOBAL (3) or RUNTIME_DEFAULT (4)", model)
}

func (s *Scene) compute(tx stage.Tx, from, to uint64) error {
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
