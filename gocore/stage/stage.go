package stage

import (
	"sync"
	"sync/atomic"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/prims"
	"ovstage.dev/ovstage/gocore/query"
)

// Stage is one attribute stage.
type Stage struct {
	name string
	dict *pathdict.Dictionary
	ops  *OpLog

	mu         sync.Mutex // guards everything below; taken before the dictionary's own lock, never after
	closed     bool
	floor      uint64                        // the global write floor
	history    uint64                        // sealed ordinals whose values stay readable; 0 and 1 = the newest
	attributes map[pathdict.Token]*attribute // all that were ever known
	inUse      map[pathdict.Token]*attribute // those with a column
	unsealed   []*attribute                  // those with records above their floor
	deleting   []*attribute                  // and those with deletes among them
	keeping    []*attribute                  // those that keep history
	spent      []spent                       // columns without a value, by age
	frontier   uint64                        // of columns that were closed: ranges from here on know every change
	prims      prims.Table
	queries    map[QueryID]query.Query
	reads      map[ReadID]*read
	snapshots  map[SnapshotID]*frozen
	maps       map[MapID]*session
	aborted    []MapID // the sessions aborted last
	ordinals   map[OrdinalQueryID]uint64
	failed     failures
	taken      []uint64 // what a call brings, while it is judged: see take
	resolved   uint64   // list positions looked up one by one
	adopted    uint64   // map groups whose buffer became all of a column without a copy
}

// Handles. Zero is never one; values are never reused within a process.
type (
	QueryID        uint64
	ReadID         uint64
	SnapshotID     uint64
	MapID          uint64
	OrdinalQueryID uint64
)

// New returns an empty stage over a dictionary, which it shares with others and does not close. ops may be nil.
func New(name string, dict *pathdict.Dictionary, ops *OpLog) *Stage {
	if ops == nil {
		ops = NewOpLog()
	}
	return &Stage{
		name:       name,
		dict:       dict,
		ops:        ops,
		attributes: map[pathdict.Token]*attribute{},
		inUse:      map[pathdict.Token]*attribute{},
		prims:      prims.New(dict),
		queries:    map[QueryID]query.Query{},
		reads:      map[ReadID]*read{},
		snapshots:  map[SnapshotID]*frozen{},
		maps:       map[MapID]*session{},
		ordinals:   map[OrdinalQueryID]uint64{},
		failed:     failures{errors: map[uint64]failure{}},
	}
}

// Close aborts open maps and closes everything that the stage holds. Blocks and list handles that callers hold stay
// valid. A closed stage answers InvalidHandle.
func (s *Stage) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for _, m := range s.maps {
		m.close()
	}
	for _, r := range s.reads {
		r.close(s.dict)
	}
	for _, q := range s.queries {
		q.Release(s.dict)
	}
	for _, a := range s.inUse {
		for _, c := range a.columns {
			c.bindings.Close()
			c.Column.Close()
		}
	}
	s.maps, s.reads, s.snapshots, s.queries, s.ordinals, s.attributes = nil, nil, nil, nil, nil, nil
	s.inUse, s.unsealed, s.deleting, s.keeping, s.spent, s.prims = nil, nil, nil, nil, nil, prims.Table{}
}

// lock takes the stage's mutex; it fails, unlocked, on a closed stage.
func (s *Stage) lock() error {
	s.mu.Lock()
	err := s.checkOpen()
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

func (s *Stage) checkOpen() error {
	if s.closed {
		return errorf(InvalidHandle, "stage %q was destroyed", s.name)
	}
	return nil
}

// handles numbers the handles of every kind and of every stage of the process, so that none is mistaken for another's.
var handles atomic.Uint64

func (s *Stage) nextID() uint64 { return handles.Add(1) }

// nextIDs takes n consecutive numbers and returns the first.
func (s *Stage) nextIDs(n int) uint64 { return handles.Add(uint64(n)) - uint64(n) + 1 }

// floorOf is the effective floor of an attribute, nil for one that is not known yet.
func (s *Stage) floorOf(a *attribute) uint64 {
	if a == nil {
		return s.floor
	}
	return max(s.floor, a.floor)
}

// exists reports whether a prim carries anything, in the newest executed state.
func (s *Stage) exists(path uint32) bool { return s.prims.Exists(path) }

// Counters is what a stage knows about itself; leak tests assert on it.
type Counters struct {
	LiveQueries, LiveReads, LiveMaps uint64
	LiveSnapshots                    uint64
	BytesColumns                     uint64 // memory of columns, reusable buffers included
	RowsResolved                     uint64 // list positions looked up one by one; stands still in a steady frame
	MapsAdopted                      uint64 // map groups whose buffer became all of a column without a copy
}

// Counters returns the stage's counters.
func (s *Stage) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Counters{
		LiveQueries:   uint64(len(s.queries)),
		LiveReads:     uint64(len(s.reads)),
		LiveSnapshots: uint64(len(s.snapshots)),
		LiveMaps:      uint64(len(s.maps)),
		RowsResolved:  s.resolved,
		MapsAdopted:   s.adopted,
	}
	for _, a := range s.inUse {
		for _, col := range a.columns {
			c.BytesColumns += uint64(col.Bytes())
		}
	}
	for _, m := range s.maps {
		for _, g := range m.groups {
			c.BytesColumns += uint64(g.block.Capacity()) // 0 for one that was committed
		}
	}
	return c
}
