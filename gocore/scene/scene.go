// Package scene knows what prims are to each other: it copies what lies below one, tells who is related to whom and who is an
// instance of what, and computes world transforms from local ones. It works on a stage from inside (stage.Submit), so that
// each of its operations is one of the stage's.
//
// # Concurrency
//
// Every method is safe from any goroutine: what a Scene remembers between operations is touched under the stage's mutex only.
package scene

import (
	"fmt"

	"ovstage/gocore/pathdict"
	"ovstage/gocore/stage"
)

// The attributes that make a hierarchy of transforms.
const (
	LocalTransform = "omni:xform"              // float64x16: relative to the nearest ancestor that has one
	ResetStack     = "omni:resetXformStack"    // bool: the local transform is the world transform
	WorldTransform = "omni:fabric:worldMatrix" // float64x16: computed
)

// Scene is the hierarchy of one stage.
type Scene struct {
	stage *stage.Stage
	dict  *pathdict.Dictionary

	local, reset, world, prototype pathdict.Token

	tree  *tree // of the last pass
	asked map[RelativesID]*Relatives
}

// New returns the scene of a stage over a dictionary.
func New(of *stage.Stage, dict *pathdict.Dictionary) (*Scene, error) {
	names := []string{LocalTransform, ResetStack, WorldTransform, Prototype}
	tokens := make([]pathdict.Token, len(names))
	if err := dict.Tokens(names, tokens); err != nil {
		return nil, err
	}
	return &Scene{
		stage: of, dict: dict, local: tokens[0], reset: tokens[1], world: tokens[2], prototype: tokens[3],
		asked: map[RelativesID]*Relatives{},
	}, nil
}

func failf(code stage.Code, format string, args ...any) *stage.Error {
	return &stage.Error{Code: code, Text: fmt.Sprintf(format, args...)}
}
