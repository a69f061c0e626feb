package scene

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

// Prototypes lists the roots of the prototypes that have an instance, in the order in which their paths were first met.
func (s *Scene) Prototypes() (list pathdict.ListHandle, err error) {
	return s.listed(func(tx stage.Tx, add func(path uint32)) error {
		return s.instances(tx, func(_, prototype uint32) { add(prototype) })
	})
}

// Instances lists the roots of the instances of a prototype, of none if it is no prototype.
func (s *Scene) Instances(prototype pathdict.Path) (list pathdict.ListHandle, err error) {
	wanted, known := s.dict.Index(prototype)
	if !known {
		return 0, unknownPath("prototype_root", prototype)
	}
	return s.listed(func(tx stage.Tx, add func(path uint32)) error {
		return s.instances(tx, func(instance, of uint32) {
			if of == wanted {
				add(instance)
			}
		})
	})
}

// PrototypeOf returns the root of the prototype of an instance.
func (s *Scene) PrototypeOf(instance pathdict.Path) (found pathdict.Path, err error) {
	wanted, known := s.dict.Index(instance)
	if !known {
		return 0, unknownPath("instance_root", instance)
	}
	err = s.stage.View(func(tx stage.Tx) error {
		return s.instances(tx, func(of, prototype uint32) {
			if of == wanted {
				found = s.dict.PathAt(prototype)
			}
		})
	})
	if err == nil && found == 0 {
		text, _ := s.dict.PathString(instance)
		err = failf(stage.NotFound, "instance_root: prim %s is not the root of an instance", text)
	}
	return found, err
}

// instances calls visit for the root of every instance and that of its prototype, in the newest executed state.
func (s *Scene) instances(tx stage.Tx, visit func(instance, prototype uint32)) error {
	columns, _, err := tx.Columns(s.prototype)
	if err != nil {
		return err
	}
	for _, c := range columns {
		if schema := c.Schema(); !schema.Array || schema.DType != (tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 1}) {
			continue
		}
		for row, values := range c.Values(column.Run(0, c.Rows()), column.Latest) {
			targets := pathsIn(values)
			if len(targets) == 0 {
				continue
			}
			if prototype, known := s.dict.Index(targets[0]); known {
				visit(c.Path(row), prototype)
			}
		}
	}
	return nil
}

// listed makes a list, with one reference, of the paths that are found, each once.
func (s *Scene) listed(find func(tx stage.Tx, add func(path uint32)) error) (list pathdict.ListHandle, err error) {
	var found []uint32
	if err := s.stage.View(func(tx stage.Tx) error {
		return find(tx, func(path uint32) { found = append(found, path) })
	}); err != nil {
		return 0, err
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return s.dict.Mint(s.dict.ListAt(found)), nil
}
