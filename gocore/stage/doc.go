// Package stage is the attribute stage: rows are prims, columns are named attributes, every write carries an ordinal, a
// monotone write floor seals ordinals, and reads serve sealed snapshots.
//
// It is the only package that ties the others together. One write, followed from here: the query gives the list of prims
// (package query), its binding gives their rows in the attribute's column (query.Bindings), the payload is copied once
// into a block (packages tensor, memory), and the block becomes a record of the column (package column) until the floor
// passes its ordinal.
//
// # Concurrency
//
// Every method is safe from any goroutine. One mutex serialises the operations of a stage, which run inline and in the
// order of submission: an operation is finished when the call that submitted it returns. Blocks that a reader holds are
// immutable and reference counted, so readers need no lock to look at bytes.
//
// # Files
//
// In reading order, ground floor first: a file may use what stands in the files above it, and nothing else of the package.
//
//	error.go        what a refusal is: a code and a text
//	limits.go       a bound; limits_tiny.go has it small, for tests
//	limits_tiny.go
//	oplog.go        numbers of operations, and the failures that are on record
//	spans.go        memory for the values of array columns
//	schema.go       which values go together in one column
//	bound.go        a column, with what path lists mean in it
//	postings.go     which prims hold which token
//	attribute.go    all columns of one name
//	group.go        what a read serves, and why it serves nothing
//	session.go      an open map: its groups and their buffers
//	frozen.go       what a snapshot holds
//	stage.go        the stage: its lock, its parts, its end
//	operation.go    how operations ended
//	names.go        names of attributes, and those for which there are rules
//	input.go        what a caller hands in, read once
//	query.go        queries over lists of paths
//	columns.go      which column takes which values
//	carriers.go     which prims carry an attribute
//	seal.go         what waits for the floor, and what the floor has passed
//	payload.go      what a client asks of a write
//	checks.go       what each write is checked for
//	judged.go       a judged write, and its copy of the payload
//	array.go        judging payloads of arrays
//	judge.go        from what was asked to a judged write
//	divide.go       from a judged write to its columns
//	record.go       from a judged write to a record
//	write.go        the operation: a batch of writes
//	delete.go       the operation: a delete
//	publish.go      the operation: deletes and writes, all or nothing
//	open.go         a map opens: it is judged, and its groups get buffers
//	map.go          the operation: a map, fetched or aborted
//	commit.go       the values of a map become a write
//	serve.go        the groups of a read: the newest values
//	changes.go      the groups of a read: what changed in a range
//	derived.go      the groups of a read: what follows from the paths of prims
//	missing.go      why a read serves nothing, in words
//	read.go         the operation: a read
//	snapshot.go     the operations: a snapshot, and reads of it
//	since.go        the operation: a read of what changed since the last one
//	tokens.go       postings of an attribute
//	match.go        which prims meet a predicate
//	filter.go       queries over prims that meet a condition
//	floor.go        the operation: the floor advances; questions about floors
//	attributes.go   what a stage holds
//	named.go        what a stage names, while its dictionary is compacted
//	tx.go           operations of the rooms above
package stage
