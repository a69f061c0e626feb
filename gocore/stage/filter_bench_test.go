package stage

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/tensor"
)

// scene is a million prims: environments of a thousand prims each, with types and schemas, and a flat family.
type scene struct {
	*Stage
	dict *pathdict.Dictionary
	b    *testing.B
}

const (
	sceneFlat = 500_000
	sceneEnvs = 500
	sceneEnv  = 1000
)

func newScene(b *testing.B) *scene {
	dict := pathdict.New(0)
	s := &scene{New(b.Name(), dict, nil), dict, b}
	b.Cleanup(func() { s.Close(); dict.Close() })
	paths := make([]string, 0, sceneFlat+sceneEnvs*sceneEnv)
	for i := range sceneFlat {
		paths = append(paths, fmt.Sprintf("/World/particle_%06d", i))
	}
	for e := range sceneEnvs {
		paths = append(paths, fmt.Sprintf("/World/envs/env_%d", e))
		for i := range sceneEnv - 1 {
			paths = append(paths, fmt.Sprintf("/World/envs/env_%d/robot_%d/link_%d", e, i/10, i%10))
		}
	}
	types, schemas := make([]pathdict.Token, len(paths)), make([]pathdict.Token, 2*len(paths))
	for i := range types {
		types[i] = s.token([]string{"Mesh", "Xform", "Cube", "Sphere"}[i*7%4])
		schemas[2*i], schemas[2*i+1] = s.token("PhysicsRigidBodyAPI"), s.token("MaterialBindingAPI")
	}
	types[999_999], schemas[1_999_999] = s.token("PhysicsScene"), s.token("PhysicsArticulationRootAPI")
	q := benchQuery(b, s.Stage, dict, paths)
	start := time.Now()
	s.write(q, "mass", payload(float32Type, make([]float32, len(paths))))
	b.Logf("a million prims created in %v", time.Since(start))
	s.write(q, "usd-prim-type", payload(idType, types))
	packed := payload(idType, schemas)
	packed.Array, packed.Semantic = true, tensor.SemanticTokenID
	s.write(q, "usd-schemas", packed)
	s.write(benchQuery(b, s.Stage, dict, paths[:10]), "few", payload(float32Type, make([]float32, 10)))
	return s
}

func (s *scene) token(name string) pathdict.Token {
	token, err := s.dict.Token(name)
	require.NoError(s.b, err)
	return token
}

func (s *scene) write(q QueryID, name string, p Payload) {
	_, err := s.Write(q, []Write{{s.token(name), p}}, 1, Upsert)
	require.Nil(s.b, err)
}

func (s *scene) count(predicates ...Predicate) int {
	id, _, err := s.QueryFilter(every(predicates...), nil)
	require.Nil(s.b, err)
	n := s.queries[id].Prims.Len()
	_, err = s.ReleaseQuery(id)
	require.Nil(s.b, err)
	return n
}

// What each kind of filter costs over a million prims: the first time, when it makes the index that it needs, and from then
// on.
func BenchmarkFilterMillion(b *testing.B) {
	s := newScene(b)
	where := func(name string, op query.FilterOp, values ...string) []Predicate {
		return []Predicate{{Attribute: s.token(name), Op: op, Values: values}}
	}
	for _, kind := range []struct {
		name   string
		filter []Predicate
		n      int
	}{
		{"every prim", nil, 1_000_000},
		{"HAS, a million", where("mass", query.Has), 1_000_000},
		{"HAS, ten", where("few", query.Has), 10},
		{"HAS usd-parent", where("usd-parent", query.Has), 0},
		{"HAS usd-children", where("usd-children", query.Has), 0},
		{"usd-path IN", where("usd-path", query.In, "/World/particle_000017"), 1},
		{"PREFIX, one environment", where("usd-path", query.Prefix, "/World/envs/env_17/"), 999},
		{"PREFIX, a part of a name", where("usd-path", query.Prefix, "/World/particle_00001"), 10},
		{"PREFIX, half a million", where("usd-path", query.Prefix, "/World/envs/"), 500_000},
		{"usd-parent IN, ten", where("usd-parent", query.In, "/World/envs/env_3/robot_4"), 10},
		{"usd-parent IN, half a million", where("usd-parent", query.In, "/World"), 500_000},
		{"usd-children CONTAINS", where("usd-children", query.Contains, "/World/envs/env_3/robot_4/link_1"), 0},
		{"usd-prim-type IN, one", where("usd-prim-type", query.In, "PhysicsScene"), 1},
		{"usd-prim-type IN, none", where("usd-prim-type", query.In, "Never"), 0},
		{"usd-prim-type IN, a quarter", where("usd-prim-type", query.In, "Cube"), 250_000},
		{"usd-schemas CONTAINS, one", where("usd-schemas", query.Contains, "PhysicsArticulationRootAPI"), 1},
		{"usd-schemas CONTAINS, a million", where("usd-schemas", query.Contains, "PhysicsRigidBodyAPI"), 1_000_000},
		{"LT on a float column", where("mass", query.LT, "0"), 0},
		{"type, prefix and schema", append(append(where("usd-prim-type", query.In, "Cube"),
			where("usd-path", query.Prefix, "/World/envs/env_17/")...), where("usd-schemas", query.Contains, "PhysicsRigidBodyAPI")...), 250},
	} {
		b.Run(kind.name, func(b *testing.B) {
			start := time.Now()
			require.InDelta(b, kind.n, s.count(kind.filter...), 1)
			first := time.Since(start)
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				s.count(kind.filter...)
				times = append(times, time.Since(start))
			}
			slices.Sort(times) // the median: a busy machine shows in few of them
			b.ReportMetric(float64(times[len(times)/2])/1e6, "ms/filter")
			b.ReportMetric(float64(first)/1e6, "ms/first")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// What it costs to keep the tree of the prims: creating and deleting a thousand prims every tick beside a million others, with
// a filter on their path each time.
func BenchmarkFilterUnderChurn(b *testing.B) {
	s := newScene(b)
	prefix := []Predicate{{Attribute: s.token("usd-path"), Op: query.Prefix, Values: []string{"/World/spawned/"}}}
	paths := make([]string, 1000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/World/spawned/p%d", i)
	}
	q, ordinal := benchQuery(b, s.Stage, s.dict, paths), uint64(1)
	s.count(prefix...) // makes the tree
	for b.Loop() {
		s.write(q, "spawn", payload(float32Type, make([]float32, len(paths))))
		require.Equal(b, len(paths), s.count(prefix...))
		_, err := s.DeleteAttributes(q, nil, ordinal)
		require.Nil(b, err)
		require.Zero(b, s.count(prefix...))
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/1e6, "ms/tick")
}

// A filter right after a write of one of a million values that it looks at.
func BenchmarkFilterAfterWrite(b *testing.B) {
	s := newScene(b)
	one := []Predicate{{Attribute: s.token("usd-prim-type"), Op: query.In, Values: []string{"PhysicsScene"}}}
	q, types := benchQuery(b, s.Stage, s.dict, []string{"/World/particle_000000"}), []pathdict.Token{s.token("Mesh")}
	s.count(one...)
	for b.Loop() {
		s.write(q, "usd-prim-type", payload(idType, types))
		require.Equal(b, 1, s.count(one...))
	}
}

func BenchmarkReadDerivedMillion(b *testing.B) {
	s := newScene(b)
	id, _, err := s.QueryFilter(every(), nil)
	require.Nil(b, err)
	for _, name := range []string{"usd-path", "usd-parent", "usd-children"} {
		b.Run(name, func(b *testing.B) {
			names := []pathdict.Token{s.token(name)}
			for b.Loop() {
				read, _, err := s.Read(id, names, Range{End: 1})
				require.Nil(b, err)
				_, err = s.ReleaseRead(read)
				require.Nil(b, err)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/1e6, "ms/read")
		})
	}
}
