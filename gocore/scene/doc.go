// Package scene knows what prims are to each other: it copies what lies below one, tells which prims are related and which are
// instances of which, and computes world transforms from local ones. It works on a stage from inside (stage.Submit), so that
// each of its operations is one of the stage's.
//
// # Concurrency
//
// Every method is safe from any goroutine: what a Scene remembers between operations is touched under the stage's mutex only.
//
// # Files
//
// In reading order, ground floor first: a file may use what stands in the files above it, and nothing else of the package.
//
//	error.go      refusals
//	matrix.go     transforms
//	input.go      a column that a pass reads
//	tree.go       the prims that have a transform, parents first
//	moves.go      paths of a clone's source, and what they become
//	relatives.go  parents, children, siblings
//	scene.go      the scene of a stage
//	instances.go  instances and their prototypes
//	questions.go  questions about relatives, and their answers
//	copy.go       a clone on its way, and its values
//	clone.go      the operation: a clone
//	pass.go       what a computation of transforms looks at
//	solve.go      which transforms have changed, and to what
//	store.go      the transforms become records
//	compute.go    the operation: a computation of transforms
package scene
