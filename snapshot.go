package ovstage

import (
	"runtime"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// Snapshot is what was sealed in one moment, until it is released or its stage is closed. It may be used from any goroutine.
type Snapshot struct {
	stage *Stage
	id    stage.SnapshotID
}

// Snapshot holds everything that is sealed now. It copies no values; the first write of a few rows after it copies their column,
// once.
func (s *Stage) Snapshot() (*Snapshot, error) {
	defer runtime.KeepAlive(s)
	id, _, err := s.engine.Snapshot()
	if err != nil {
		return nil, err
	}
	snap := &Snapshot{s, id}
	engine := s.engine
	runtime.AddCleanup(snap, func(id stage.SnapshotID) { _, _ = engine.ReleaseSnapshot(id) }, id)
	return snap, nil
}

// Floor is how far the whole stage was sealed.
func (s *Snapshot) Floor() (uint64, error) {
	defer runtime.KeepAlive(s)
	return s.stage.engine.SnapshotFloor(s.id, 0)
}

// Release ends the snapshot. Columns that were read of it stay valid.
func (s *Snapshot) Release() error {
	defer runtime.KeepAlive(s)
	_, err := s.stage.engine.ReleaseSnapshot(s.id)
	return err
}

// ReadSnapshot returns the values that prims of the snapshot's stage had in it. Those that had none are not in it.
func ReadSnapshot[T any](s *Snapshot, p *Prims, attribute string) (*Column[T], error) {
	defer runtime.KeepAlive(s)
	name, err := p.stage.name(attribute)
	if err != nil {
		return nil, err
	}
	return read[T](p, func() (stage.ReadID, uint64, error) {
		return s.stage.engine.ReadSnapshot(s.id, p.query, []pathdict.Token{name})
	}, name)
}
