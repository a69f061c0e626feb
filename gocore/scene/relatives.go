package scene

import (
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// Relation is a kind of relatives.
type Relation uint32

// The relations. All of them are between prims: a path that carries nothing is no prim's parent, and / never is.
const (
	Parent   Relation = 0
	Children Relation = 1 // the direct ones
	Siblings Relation = 2 // the others below the same path
)

// RelativesID is a question about relatives. It is a handle like the stage's other handles.
type RelativesID uint64

// Relatives is its answer.
type Relatives struct {
	Ordinal uint64 // the ordinal of the question
	Known   []bool // for each path that was asked about, whether it is a prim
	Ends    []int  // where its relatives end in Paths; they begin where the relatives of the path before end
	Paths   []pathdict.Path
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
