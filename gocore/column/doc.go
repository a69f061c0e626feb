// Package column stores the rows of one attribute that share a schema: the sealed state that readers share, the writes
// that are not sealed yet, and the blocks that move between the two.
//
// # Versions
//
// The sealed state is one flat block. As soon as a reader may hold it, it is immutable: it is replaced, never changed, and the
// reader's reference keeps the old block. Everything above the write floor waits as records, ordered by ordinal and then by
// submission: a record is a set of rows and their packed bytes. Sealing folds the records up to the floor into the sealed
// state. A record that covers every row becomes the new block as it is; records of a few rows are scattered in place when only
// the column holds the sealed block, else into the column's previous block, which is first brought up to date by the rows that
// changed since it was current. So a write costs what it touches, and a covering write or an adopted map costs nothing at
// sealing.
//
// # Concurrency
//
// A Column has no lock of its own: the stage that owns it serialises every call. Blocks are reference counted and may be
// released by any thread; a count of one, seen under the stage's lock, means that nothing else can reach the bytes.
//
// # Files
//
// In reading order, ground floor first; a file may use what stands in the files above it:
//
//	limits.go       bounds of caches and logs
//	limits_tiny.go  the same for tests: every bound is soon reached
//	schema.go       what the bytes of a column are
//	rows.go         which rows a payload names, and how its bytes move to them
//	table.go        which row a prim has
//	arena.go        where the values of array columns lie
//	record.go       one write or delete that is not sealed
//	lookup.go       at which indices of a list a row stands
//	latest.go       when each row changed last
//	changes.go      the log of sealed changes
//	undo.go         what a seal changed
//	state.go        what readers see: the sealed rows, which of them live
//	spare.go        a block that held an earlier state, and how far it is behind
//	column.go       the column itself
//	history.go      earlier states that are still served
//	hold.go         the state of a moment, for as long as somebody wants it
//	reuse.go        which spare block is used again
//	records.go      the records, by ordinal
//	condense.go     many records of one ordinal become two
//	write.go        writes and deletes become records
//	fold.go         records become bytes of the sealed state
//	seal.go         the floor passes: fold, install, reclaim
//	values.go       the values of rows as of an ordinal
//	alive.go        which rows hold a value as of an ordinal
//	changed.go      which rows changed, or wait for the floor
//	held.go         which paths and values a column holds
package column
