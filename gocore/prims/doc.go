// Package prims knows which prims exist, what each of them carries, and how they lie under each other. Prims are dense path
// indices (package pathdict); values are the matter of package column.
//
// A Table belongs to one stage, whose mutex guards it: nothing here may be called by two threads at once.
//
// The files, ground floor first; a file may use what stands in the files above it:
//
//	set.go    sets of paths
//	kinds.go  which attributes each prim carries
//	names.go  many children of one path, searched by name
//	tree.go   what lies under a path
//	table.go  the prims that exist, in the order of their creation
package prims
