package scene

import (
	"ovstage/gocore/pathdict"
	"ovstage/gocore/stage"
)

// Relation is a kind of relatives.
type Relation uint32

// The relations. All of them are between prims: a path that carries nothing is nobody's parent, and / never is.
const (
	Parent   Relation = 0
	Children Relation = 1 // the direct ones
	Siblings Relation = 2 // the others below the same path
)

// RelativesID is a question about relatives. Its numbers are those of the stage's other handles.
type RelativesID uint64

// Relatives is its answer.
type Relatives struct {
	Ordinal uint64 // that of the question
	Known   []bool // for each path that was asked about, whether it is a prim
	Ends    []int  // where its relatives end in Paths; they begin where those of the path before end
	Paths   []pathdict.Path
}

// AskRelatives finds the relatives of the prims of a list, as they are in the newest executed state, in the order of their
// creation. The ordinal is repeated in the answer.
func (s *Scene) AskRelatives(handle pathdict.ListHandle, ordinal uint64, relation Relation) (id RelativesID, op uint64, err *stage.Error) {
	if relation > Siblings {
		return 0, 0, failf(stage.InvalidArgument, "relation %d is none, expected PARENT (0), CHILDREN (1) or SIBLINGS (2)", relation)
	}
	list, failure := s.dict.List(handle)
	if failure != nil {
		return 0, 0, failf(stage.InvalidHandle, "prim_paths %d: %s", handle, failure)
	}
	err = s.stage.View(func(tx stage.Tx) *stage.Error {
		id = RelativesID(tx.NextHandle())
		s.asked[id] = relatives(tx, list, ordinal, relation)
		op = tx.Succeed()
		return nil
	})
	return id, op, err
}

// relatives answers a question.
func relatives(tx stage.Tx, list *pathdict.List, ordinal uint64, relation Relation) *Relatives {
	dict := tx.Dictionary()
	answer := &Relatives{Ordinal: ordinal, Known: make([]bool, list.Len()), Ends: make([]int, list.Len())}
	add := func(path uint32) { answer.Paths = append(answer.Paths, dict.PathAt(path)) }
	for i, path := range list.Indices() {
		parent := dict.ParentAt(path)
		switch answer.Known[i] = tx.Exists(path); {
		case !answer.Known[i]:
		case relation == Children:
			tx.Children(path, add)
		case relation == Parent && parent != 0 && tx.Exists(parent):
			add(parent)
		case relation == Siblings && path != 0:
			tx.Children(parent, func(other uint32) {
				if other != path {
					add(other)
				}
			})
		}
		answer.Ends[i] = len(answer.Paths)
	}
	return answer
}

// FetchRelatives returns an answer. It may be asked for again, and stays as it is.
func (s *Scene) FetchRelatives(id RelativesID) (answer *Relatives, err *stage.Error) {
	err = s.stage.View(func(stage.Tx) *stage.Error {
		var known bool
		if answer, known = s.asked[id]; !known {
			return unknownQuestion(id)
		}
		return nil
	})
	return answer, err
}

// ReleaseRelatives ends a question; answers that were fetched stay.
func (s *Scene) ReleaseRelatives(id RelativesID) (op uint64, err *stage.Error) {
	err = s.stage.View(func(tx stage.Tx) *stage.Error {
		if _, known := s.asked[id]; !known {
			return unknownQuestion(id)
		}
		delete(s.asked, id)
		op = tx.Succeed()
		return nil
	})
	return op, err
}

func unknownQuestion(id RelativesID) *stage.Error {
	return failf(stage.InvalidHandle, "hierarchy handle %d is unknown or was released", id)
}
