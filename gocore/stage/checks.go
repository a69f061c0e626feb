package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// target finds the attribute that a client means by a name, under the name by which it is kept; it is nil where the stage does not
// know it yet. Names that can't be written are refused, and ordinals that are sealed.
func (s *Stage) target(verb string, name pathdict.Token, ordinal uint64) (pathdict.Token, *attribute, error) {
	a := s.attributes[name]
	if !a.isPlain() {
		name = s.stored(name)
		if err := s.checkNames("attribute", []pathdict.Token{name}); err != nil {
			return name, nil, err
		}
		if text := s.text(name); slices.Contains(derived, text) {
			return name, nil, errorf(NotSupported, "attribute %q is derived from the prims and can't be %s", text, verb)
		}
		a = s.attributes[name]
	}
	return name, a, s.checkFloor(a, name, ordinal)
}

// checkFloor refuses an ordinal that is sealed for an attribute, which is nil where the stage does not know it yet.
func (s *Stage) checkFloor(a *attribute, name pathdict.Token, ordinal uint64) error {
	if floor := s.floorOf(a); ordinal <= floor {
		return errorf(WriteFloorViolation, "attribute %q: ordinal %d is sealed, the write floor is %d; use an ordinal above it",
			s.quoted(name), ordinal, floor)
	}
	return nil
}

// checkMode refuses unknown modes, an Insert that meets a prim, and a Require that misses one.
func (s *Stage) checkMode(prims *pathdict.List, mode Mode) error {
	switch mode {
	case Upsert, Update:
		return nil
	case Insert:
		for i, path := range prims.Indices() {
			if s.exists(path) {
				return errorf(PrimNotFound, "prim_mode INSERT: prim %s already exists; nothing was written", s.path(prims.At(i)))
			}
		}
		return nil
	case Require:
		for i, path := range prims.Indices() {
			if !s.exists(path) {
				return errorf(PrimNotFound, "prim_mode REQUIRE: prim %s does not exist; nothing was written", s.path(prims.At(i)))
			}
		}
		return nil
	}
	return errorf(InvalidArgument, "prim_mode %d is not one of UPSERT (0), INSERT (1), UPDATE (2), REQUIRE (3)", int32(mode))
}

// checkFixed refuses another schema for an attribute whose schema is fixed.
func (s *Stage) checkFixed(a *attribute, name pathdict.Token, schema column.Schema) error {
	if a.isPlain() {
		return nil
	}
	array, fixed := tokenColumns[s.text(name)]
	expected := column.Schema{DType: tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 1}, Array: array}
	given := column.Schema{DType: schema.DType, Array: schema.Array}
	if !fixed || given == expected && (schema.Semantic == tensor.SemanticNone || schema.Semantic == tensor.SemanticTokenID) {
		return nil
	}
	return errorf(InvalidArgument, "attribute %q holds token ids: expected %s TOKEN_ID, got %s", s.quoted(name), expected, schema)
}
