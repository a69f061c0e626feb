// Package query says which prims an operation is about and where their rows are: a path-list query is an immutable list
// of prims, and a Binding is the answer of one column to one list.
//
// Bindings are cached by the content of the list, not by the query that carries it, since clients make a new query, some
// a new list, for every write. A steady frame therefore looks nothing up per row.
package query

import "ovstage/gocore/pathdict"

// Query names prims by a list of paths, which need not exist.
type Query struct {
	Prims  *pathdict.List
	Handle pathdict.ListHandle // the query's own handle of the list, by which its groups name prims
}

// FromList returns a query over the list behind handle. It takes a handle of its own: the caller's may go at once.
func FromList(dict *pathdict.Dictionary, handle pathdict.ListHandle) (Query, error) {
	list, err := dict.List(handle)
	if err != nil {
		return Query{}, err
	}
	return Query{Prims: list, Handle: dict.Mint(list)}, nil
}

// Release gives the query's list handle back; groups hold references of their own.
func (q Query) Release(dict *pathdict.Dictionary) { _ = dict.ReleaseRef(q.Handle) }
