package scene

import (
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// AskRelatives finds the relatives of the prims of a list, as they are in the newest executed state, in the order of their
// creation. The ordinal is repeated in the answer.
func (s *Scene) AskRelatives(handle pathdict.ListHandle, ordinal uint64, relation Relation) (id RelativesID, op uint64, err error) {
	if relation > Siblings {
		return 0, 0, failf(stage.InvalidArgument, "relation %d is none, expected PARENT (0), CHILDREN (1) or SIBLINGS (2)", relation)
	}
	list, failure := s.dict.List(handle)
	if failure != nil {
		return 0, 0, failf(stage.InvalidHandle, "prim_paths %d: %s", handle, failure)
	}
	err = s.stage.View(func(tx stage.Tx) error {
		id = RelativesID(tx.NextHandle())
		s.asked[id] = relatives(tx, list, ordinal, relation)
		op = tx.Succeed()
		return nil
	})
	return id, op, err
}

// FetchRelatives returns an answer. It may be asked for again, and stays as it is.
func (s *Scene) FetchRelatives(id RelativesID) (answer *Relatives, err error) {
	err = s.stage.View(func(stage.Tx) error {
		var known bool
		if answer, known = s.asked[id]; !known {
			return unknownQuestion(id)
		}
		return nil
	})
	return answer, err
}

// ReleaseRelatives ends a question; answers that were fetched stay.
func (s *Scene) ReleaseRelatives(id RelativesID) (op uint64, err error) {
	err = s.stage.View(func(tx stage.Tx) error {
		if _, known := s.asked[id]; !known {
			return unknownQuestion(id)
		}
		delete(s.asked, id)
		op = tx.Succeed()
		return nil
	})
	return op, err
}

func unknownQuestion(id RelativesID) error {
	return failf(stage.InvalidHandle, "hierarchy handle %d is unknown or was released", id)
}
