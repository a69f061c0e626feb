package stage

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// openMap is a session of the play. Groups leave it when they are committed.
type openMap struct {
	id      MapID
	name    string // in the script
	ordinal uint64
	groups  []openGroup
}

// openGroup is what the session should have lent.
type openGroup struct {
	*MapGroup // nil: never fetched
	name      string
	paths     []string
	initial   []float3 // nil: unspecified
}

// openSome opens a session of any mode, cut into groups or not, and fetches all of its groups or some.
func (p *play) openSome() {
	paths, ordinal := p.some(), p.ordinal()
	desc := MapDesc{Attribute: p.token("p"), DType: float3Type, Initial: Initial(p.random.IntN(3))}
	desc.Mode = []Mode{Upsert, Upsert, Upsert, Update, Update, Insert}[p.random.IntN(6)]
	if p.random.IntN(2) == 0 {
		desc.GroupRows = 1 + p.random.Uint64N(5)
	}
	p.say("map m%d %s p@%d float32x3 initial=%s mode=%s%s", len(p.script), strings.Join(paths, ","), ordinal,
		[]string{"current", "zero", "discard"}[desc.Initial], []string{"upsert", "insert", "update"}[desc.Mode],
		map[bool]string{true: fmt.Sprintf(" group=%d", desc.GroupRows)}[desc.GroupRows > 0])
	name := fmt.Sprintf("m%d", len(p.script)-1)
	id, _, err := p.Map(p.query(paths...), desc, ordinal)
	if desc.Mode == Insert && slices.ContainsFunc(paths, p.model.exists) {
		require.NotNil(p.T, err)
		require.Equal(p.T, PrimNotFound, CodeOf(err))
		return
	}
	require.Nil(p.T, err)
	m := openMap{id: id, ordinal: ordinal, name: name}
	fetched, sloppy := true, p.random.IntN(3) == 0
	for positions := range slices.Chunk(p.mapped(paths, desc.Mode), p.groupRows(desc, paths)) {
		g := openGroup{initial: []float3{}}
		for _, position := range positions {
			g.paths = append(g.paths, paths[position])
			value, _ := p.model.at(paths[position], ordinal)
			if desc.Initial == Zero {
				value = float3{}
			}
			g.initial = append(g.initial, value)
		}
		if desc.Initial == Discard {
			g.initial = nil
		}
		if fetched = fetched && !(sloppy && p.random.IntN(3) == 0); fetched {
			g.name = fmt.Sprintf("%s.%d", name, len(m.groups))
			p.say("fetch %s", name)
			p.fetch(&g, id, positions)
		}
		m.groups = append(m.groups, g)
	}
	if fetched {
		end, err := p.FetchMap(id)
		require.Nil(p.T, err)
		require.Nil(p.T, end)
	}
	p.open = append(p.open, m)
}

// mapped lists the positions of the prims that a mode lets through.
func (p *play) mapped(paths []string, mode Mode) (positions []int) {
	for i, path := range paths {
		if mode != Update || p.model.exists(path) {
			positions = append(positions, i)
		}
	}
	return positions
}

func (p *play) groupRows(desc MapDesc, paths []string) int {
	if desc.GroupRows == 0 {
		return len(paths)
	}
	return int(desc.GroupRows)
}

func (p *play) fetch(g *openGroup, id MapID, positions []int) {
	fetched, err := p.FetchMap(id)
	require.Nil(p.T, err)
	require.NotNil(p.T, fetched)
	g.MapGroup = fetched
	listed := make([]int, fetched.PrimCount)
	for k := range listed {
		listed[k] = int(fetched.PrimOffset) + k
		if fetched.PrimMap.Valid() {
			listed[k] = int(fetched.PrimMap.Uint32s(len(listed))[k])
		}
	}
	require.Equal(p.T, positions, listed)
	require.Equal(p.T, len(listed), fetched.Rows)
	if g.initial != nil {
		require.Equal(p.T, g.initial, g.values(), "what the buffer starts with")
	}
}

// values is the mapped buffer as rows.
func (g openGroup) values() []float3 {
	return unsafe.Slice((*float3)(g.Data.Pointer()), g.Rows)
}

// closeSome commits one group, or all that is left, or aborts. The commit of a sealed ordinal fails.
func (p *play) closeSome() {
	if len(p.open) == 0 {
		return
	}
	at := p.random.IntN(len(p.open))
	m := &p.open[at]
	if p.random.IntN(2) == 0 && slices.ContainsFunc(m.groups, func(g openGroup) bool { return g.MapGroup != nil }) {
		p.commitOne(m)
		return
	}
	var op uint64
	var err error
	if p.random.IntN(5) == 0 {
		p.say("abort %s", m.name)
		err = p.Abort(m.id)
	} else {
		late := p.fill(m.groups)
		p.say("commit %s", m.name)
		op, err = p.Unmap(m.id, false)
		late()
		if failed := p.judge(m, op); !failed {
			p.apply(m.ordinal, m.groups)
		}
	}
	require.Nil(p.T, err)
	for _, g := range m.groups {
		if g.MapGroup != nil {
			g.MapGroup.Release(p.dict)
		}
	}
	p.open = slices.Delete(p.open, at, at+1)
}

func (p *play) commitOne(m *openMap) {
	at := p.random.IntN(len(m.groups))
	for m.groups[at].MapGroup == nil {
		at = (at + 1) % len(m.groups)
	}
	one := m.groups[at : at+1]
	late := p.fill(one)
	p.say("commit %s", one[0].name)
	op, err := p.UnmapGroup(m.id, one[0].Key, false)
	require.Nil(p.T, err)
	late()
	if p.judge(m, op) {
		return // the session goes on until its end
	}
	p.apply(m.ordinal, one)
	_, err = p.UnmapGroup(m.id, one[0].Key, false)
	require.Equal(p.T, InvalidHandle, CodeOf(err))
	one[0].MapGroup.Release(p.dict)
	m.groups = slices.Delete(m.groups, at, at+1)
}

// fill writes new values into groups; late writes to them once more, through views that were alive at the commit.
func (p *play) fill(groups []openGroup) (late func()) {
	var undo []func()
	for i := range groups {
		g := &groups[i]
		if g.MapGroup == nil {
			continue
		}
		values := g.values()
		for k := range values {
			p.value++
			values[k] = one(p.value)
		}
		g.initial = slices.Clone(values)
		p.say("fill %s%s", g.name, spelled(values))
		if p.random.IntN(2) == 0 {
			view := g.Data.Retain()
			undo = append(undo, func() {
				for k := range values {
					values[k] = one(-1)
				}
				view.Release()
			})
		}
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// judge tells whether a commit failed, as it must exactly when its ordinal is sealed and there was something to commit.
func (p *play) judge(m *openMap, op uint64) (failed bool) {
	failure := p.OpError(op)
	something := slices.ContainsFunc(m.groups, func(g openGroup) bool { return g.initial != nil })
	if m.ordinal <= p.model.floor && something {
		require.NotNil(p.T, failure)
		require.Equal(p.T, WriteFloorViolation, CodeOf(failure))
		return true
	}
	require.Nil(p.T, failure)
	return false
}

func (p *play) apply(ordinal uint64, groups []openGroup) {
	for _, g := range groups {
		for i, value := range g.initial {
			p.model.write(g.paths[i], ordinal, value)
		}
	}
}
