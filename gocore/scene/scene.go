package scene

import (
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// The attributes that make a hierarchy of transforms.
const (
	LocalTransform = "omni:xform"              // float64x16: relative to the nearest ancestor that has one
	ResetStack     = "omni:resetXformStack"    // bool: the local transform is the world transform
	WorldTransform = "omni:fabric:worldMatrix" // float64x16: computed
)

// Prototype is the attribute that makes a prim the root of an instance: a relationship (uint64 array, RELATIONSHIP_PATH_ID)
// whose first target is the root of its prototype. Population writes it; prims inside an instance have none.
const Prototype = "usd-prototype"

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
