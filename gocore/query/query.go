// Package query says which prims an operation is about and where their rows are: a query is an immutable list of prims,
// given by the client or found by a filter, and a Binding is the answer of one column to one list.
//
// Bindings are cached by the content of the list, not by the query that carries it, since clients make a new query, some
// a new list, for every write. A steady frame therefore looks nothing up per row.
package query

import "ovstage.dev/ovstage/gocore/pathdict"

// Query names prims by a list of paths. Those that a client lists need not exist; those that a filter found did when it was
// asked, and stay listed whatever becomes of them.
type Query struct {
	Prims  *pathdict.List
	Handle pathdict.ListHandle // the query's own handle of the list, by which its groups name prims
	Scope  []pathdict.Token    // the attributes that its result may report; none = all
	Filter *Condition          // what found the prims; nil when the client listed them
}

// FromList returns a query over the list behind handle. It takes a handle of its own: the caller's may go at once.
func FromList(dict *pathdict.Dictionary, handle pathdict.ListHandle) (Query, error) {
	list, err := dict.List(handle)
	if err != nil {
		return Query{}, err
	}
	return Query{Prims: list, Handle: dict.Mint(list)}, nil
}

// Select makes the query one over the prims at these dense path indices, in place of those that it listed, if any. What is
// open keeps the earlier list; where the two are equal, so does the query, and its handle.
func (q *Query) Select(dict *pathdict.Dictionary, indices []uint32) {
	list := dict.ListAt(indices)
	if list == q.Prims {
		return
	}
	if q.Prims != nil {
		q.Release(dict)
	}
	q.Prims, q.Handle = list, dict.Mint(list)
}

// Release gives the query's list handle back; groups hold references of their own.
func (q Query) Release(dict *pathdict.Dictionary) { _ = dict.ReleaseRef(q.Handle) }
