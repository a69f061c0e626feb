// Package ovstage is the attribute stage for programs in Go: rows are prims, named by paths, columns are named attributes, every
// write carries an ordinal that the application chooses, a write floor seals ordinals, and reads serve what is sealed.
//
// It is a thin door to the engine, for the calls that everybody makes, with values as Go has them: a row of three float32 is
// a [3]float32. What it does not have, [Stage.Engine] has: filters, sessions that are committed group by group, publications,
// history, scenes. The packages under gocore are the engine and may be used as they are.
//
// # Memory
//
// Columns lie outside of Go's heap, where the collector doesn't follow a slice. So no slice over them leaves this package: a
// function that fills or reads rows gets them for the length of its call ([Map], [MapParts], [Column.View]) and must not keep them;
// what is returned is a copy ([Column.Values]). A [Stage], a [Prims] or a [Column] that is dropped gives back what it holds when
// the collector finds it; Close and Release do so at once, which a program that makes many of them should not leave to luck.
//
// # Failures
//
// A failure is an error whose text names the argument, its value and what was expected; [CodeOf] is its code. A call that fails
// has changed nothing.
package ovstage
