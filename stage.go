package ovstage

import (
	"runtime"
	"slices"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// Code classifies a failure. The numbers are those of the C interface.
type Code = stage.Code

// CodeOf is the code of a failure, stage.OK of none.
func CodeOf(err error) Code { return stage.CodeOf(err) }

// Stage is one attribute stage, with names of its own. Its methods, and those of what it makes, may be called from any goroutine.
type Stage struct {
	engine *stage.Stage
	*names
}

// names is the dictionary of a stage, which columns need longer than the stage lasts: it is closed when none of them is left.
type names struct{ dict *pathdict.Dictionary }

// New returns an empty stage. The name is for error texts.
func New(name string) *Stage {
	dict := pathdict.New(0)
	n := &names{dict}
	runtime.AddCleanup(n, (*pathdict.Dictionary).Close, dict)
	s := &Stage{stage.New(name, dict, nil), n}
	runtime.AddCleanup(s, (*stage.Stage).Close, s.engine)
	return s
}

// Close drops everything that the stage holds, now instead of when the collector finds it; its calls fail with
// stage.InvalidHandle from then on. Columns that were read stay valid.
func (s *Stage) Close() { s.engine.Close() }

// Engine is the stage with all that it can do. It lasts as long as s does.
func (s *Stage) Engine() *stage.Stage { return s.engine }

// Names is the dictionary of the stage's paths and attributes. It lasts as long as s does.
func (s *Stage) Names() *pathdict.Dictionary { return s.dict }

// Seal advances the write floor: what was written at or below the ordinal is what readers see, and never changes again.
func (s *Stage) Seal(ordinal uint64) error {
	_, err := s.engine.AdvanceFloor(ordinal, stage.All, nil)
	return err
}

// Floor is the ordinal up to which everything is sealed.
func (s *Stage) Floor() (uint64, error) { return s.floor(0) }

// floor is that of an attribute; 0 is every attribute.
func (s *Stage) floor(name pathdict.Token) (uint64, error) {
	id, _, err := s.engine.AttributeFloor(name)
	if err != nil {
		return 0, err
	}
	ordinal, err := s.engine.FetchOrdinal(id)
	if err != nil {
		return 0, err
	}
	_, err = s.engine.ReleaseOrdinalQuery(id)
	return ordinal, err
}

// finished is how an operation ended, whose record goes with the answer.
func (s *Stage) finished(op uint64, err error) error {
	if err != nil {
		return err
	}
	if err = s.engine.OpError(op); err != nil {
		_ = s.engine.ForgetOp(op)
	}
	return err
}

// Prims is a list of prims in a fixed order, whether they exist yet or not: writing creates them.
type Prims struct {
	stage   *Stage
	paths   []string
	query   stage.QueryID
	cleanup runtime.Cleanup
}

// Prims lists prims by their paths, such as "/World/Robot". A loop makes it once and uses it every tick.
func (s *Stage) Prims(paths ...string) (*Prims, error) {
	list, err := s.dict.NewListFromStrings(paths)
	if err != nil {
		return nil, &stage.Error{Code: stage.CodeOf(err), Text: err.Error()}
	}
	query, err := s.engine.QueryPaths(list)
	if released := s.dict.ReleaseRef(list); err == nil {
		err = released
	}
	if err != nil {
		return nil, err
	}
	p := &Prims{stage: s, paths: slices.Clone(paths), query: query}
	p.cleanup = runtime.AddCleanup(p, func(query stage.QueryID) { _, _ = s.engine.ReleaseQuery(query) }, query)
	return p, nil
}

// Release gives the list back now instead of when the collector finds it. Columns that were read from it stay.
func (p *Prims) Release() error {
	p.cleanup.Stop()
	_, err := p.stage.engine.ReleaseQuery(p.query)
	return err
}

// Query is the list as the engine knows it, while p is used.
func (p *Prims) Query() stage.QueryID { return p.query }

// Delete deletes attributes of the prims at an ordinal; without names it deletes the prims, with all that they carry.
func (p *Prims) Delete(ordinal uint64, attributes ...string) error {
	defer runtime.KeepAlive(p)
	names := make([]pathdict.Token, len(attributes))
	if err := p.stage.dict.Tokens(attributes, names); err != nil {
		return &stage.Error{Code: stage.CodeOf(err), Text: err.Error()}
	}
	return p.stage.finished(p.stage.engine.DeleteAttributes(p.query, names, ordinal))
}
