// Package contract holds package ovstage, as a program in Go uses it, to what it promises. What a stage answers in general is in
// the golden scripts.
package contract

import (
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

type float3 = [3]float32

// open is a stage with two prims.
func open(t *testing.T) (*ovstage.Stage, *ovstage.Prims) {
	s := ovstage.New(t.Name())
	t.Cleanup(s.Close)
	prims, err := s.Prims("/A", "/B")
	require.NoError(t, err)
	return s, prims
}

// values reads what is sealed, by prim.
func values[T any](t *testing.T, prims *ovstage.Prims, name string) map[string]T {
	t.Helper()
	column, err := ovstage.Read[T](prims, name)
	require.NoError(t, err)
	defer column.Release()
	return maps.Collect(column.All())
}

func TestSuccessIsNil(t *testing.T) {
	s, prims := open(t)
	var err error
	_, err = s.Engine().AdvanceFloor(1, stage.All, nil) // an *Error in an error would not be nil
	assert.True(t, err == nil)
	err = ovstage.Write(prims, "p", 2, []int32{1, 2})
	assert.True(t, err == nil)
	assert.Equal(t, stage.OK, ovstage.CodeOf(err))
}

func TestWritesAreSeenWhenTheyAreSealed(t *testing.T) {
	s, prims := open(t)
	require.NoError(t, ovstage.Write(prims, "p", 1, []float3{{1, 2, 3}, {4, 5, 6}}))
	assert.Empty(t, values[float3](t, prims, "p"))
	require.NoError(t, s.Seal(1))
	assert.Equal(t, map[string]float3{"/A": {1, 2, 3}, "/B": {4, 5, 6}}, values[float3](t, prims, "p"))
	floor, err := s.Floor()
	require.NoError(t, err)
	assert.Equal(t, uint64(1), floor)
}

func TestRefusalsHaveCodeAndText(t *testing.T) {
	s, prims := open(t)
	require.NoError(t, ovstage.Write(prims, "p", 1, []int32{1, 2}))
	require.NoError(t, s.Seal(1))
	_, noPath := s.Prims("A")
	_, otherType := ovstage.Read[float32](prims, "p")
	_, noType := ovstage.Read[string](prims, "p")
	for _, refused := range []struct {
		err  error
		code ovstage.Code
		text string
	}{
		{ovstage.Write(prims, "p", 1, []int32{5, 6}), stage.WriteFloorViolation, `attribute "p": ordinal 1 is sealed`},
		{ovstage.Write(prims, "p", 2, []int32{5}), stage.InvalidArgument, "has 1 rows, but 2 prims are to be written"},
		{ovstage.Write(prims, "p", 2, []float32{5, 6}), stage.InvalidArgument, "does not match the existing int32"},
		{ovstage.Write(prims, "p", 2, []string{"a", "b"}), stage.InvalidArgument, "no values of the Go type string"},
		{ovstage.Write(prims, "q", 2, []int32{5, 6}, ovstage.InMode(stage.Insert)), stage.PrimNotFound, "prim /A already exists"},
		{noPath, stage.InvalidArgument, `must start with "/"`},
		{otherType, stage.InvalidArgument, "its values are int32, they can't be read as float32"},
		{noType, stage.InvalidArgument, "no values of the Go type string"},
	} {
		require.ErrorContains(t, refused.err, refused.text)
		assert.Equal(t, refused.code, ovstage.CodeOf(refused.err), refused.text)
	}
	assert.Equal(t, map[string]int32{"/A": 1, "/B": 2}, values[int32](t, prims, "p"))
}

func TestMapCommitsWhenItReturns(t *testing.T) {
	s, prims := open(t)
	require.NoError(t, ovstage.Write(prims, "p", 1, []int32{1, 2}))
	require.NoError(t, ovstage.Map(prims, "p", 2, func(rows []int32) error {
		assert.Equal(t, []int32{1, 2}, rows)
		rows[1] = 20
		return nil
	}))
	require.NoError(t, s.Seal(2))
	assert.Equal(t, map[string]int32{"/A": 1, "/B": 20}, values[int32](t, prims, "p"))

	full := errors.New("full")
	failed := ovstage.Map(prims, "p", 3, func(rows []int32) error {
		rows[0] = 100
		return full
	})
	require.ErrorIs(t, failed, full)
	require.Panics(t, func() { _ = ovstage.Map(prims, "p", 3, func(rows []int32) error { panic(rows[0]) }) })
	require.NoError(t, ovstage.Map(prims, "new", 3, func(rows []float3) error {
		assert.Equal(t, make([]float3, 2), rows)
		return nil
	}))
	require.NoError(t, s.Seal(3))
	assert.Equal(t, map[string]int32{"/A": 1, "/B": 20}, values[int32](t, prims, "p"), "what failed wrote nothing")
	assert.Zero(t, s.Engine().Counters().LiveMaps)

	late := ovstage.Map(prims, "p", 4, func([]int32) error { return s.Seal(4) })
	require.ErrorContains(t, late, "nothing was written")
	assert.Equal(t, stage.WriteFloorViolation, ovstage.CodeOf(late))
}

// Values of two types are two columns. A map over both is filled column by column, and committed as one.
func TestMapPartsFillsSeveralColumns(t *testing.T) {
	s, both := open(t)
	first, err := s.Prims("/A")
	require.NoError(t, err)
	second, err := s.Prims("/B")
	require.NoError(t, err)
	require.NoError(t, ovstage.Write(first, "v", 1, []float3{{1}}, ovstage.WithType("color3f")))
	require.NoError(t, ovstage.Write(second, "v", 1, []float3{{2}}, ovstage.WithType("point3f")))

	whole := ovstage.Map(both, "v", 2, func([]float3) error { return nil })
	assert.Equal(t, stage.NotSupported, ovstage.CodeOf(whole))
	assert.ErrorContains(t, whole, "map them by MapParts")
	require.NoError(t, ovstage.MapParts(both, "v", 2, func(prims []int, rows []float3) error {
		for i, prim := range prims {
			rows[i][1] = float32(10 + prim)
		}
		return nil
	}))
	require.NoError(t, s.Seal(2))
	filled := map[string]float3{"/A": {1, 10}, "/B": {2, 11}}
	assert.Equal(t, filled, values[float3](t, both, "v"))

	parts, full := 0, errors.New("full")
	failed := ovstage.MapParts(both, "v", 3, func(_ []int, rows []float3) error {
		if parts++; parts == 2 {
			return full
		}
		rows[0] = float3{9}
		return nil
	})
	require.ErrorIs(t, failed, full)
	require.NoError(t, s.Seal(3))
	assert.Equal(t, filled, values[float3](t, both, "v"), "where one part fails none is written")
	assert.Zero(t, s.Engine().Counters().LiveMaps)
}

// An option that chooses some of the prims maps their rows alone.
func TestMapPartsOfSomePrims(t *testing.T) {
	s, prims := open(t)
	last, err := s.Prims("/B")
	require.NoError(t, err)
	require.NoError(t, ovstage.Write(last, "p", 1, []int32{2}))
	require.NoError(t, ovstage.MapParts(prims, "p", 2, func(prims []int, rows []int32) error {
		assert.Equal(t, []int{1}, prims)
		rows[0]++
		return nil
	}, ovstage.InMode(stage.Update)))
	require.NoError(t, s.Seal(2))
	assert.Equal(t, map[string]int32{"/B": 3}, values[int32](t, prims, "p"))
}

func TestAColumnIsASnapshot(t *testing.T) {
	s, prims := open(t)
	require.NoError(t, ovstage.Write(prims, "p", 1, []int32{1, 2}))
	require.NoError(t, s.Seal(1))
	column, err := ovstage.Read[int32](prims, "p")
	require.NoError(t, err)
	require.NoError(t, ovstage.Write(prims, "p", 2, []int32{10, 20}))
	require.NoError(t, s.Seal(2))
	require.NoError(t, prims.Delete(3))
	require.NoError(t, s.Seal(3))
	s.Close()
	assert.Equal(t, []int32{1, 2}, column.Values())
	value, ok := column.At("/B")
	assert.True(t, ok)
	assert.Equal(t, int32(2), value)
	_, ok = column.At("/C")
	assert.False(t, ok)
	assert.Equal(t, 2, column.Len())
	for path := range column.All() { // a loop may be left
		assert.Equal(t, "/A", path)
		break
	}
	column.Release()
	assert.Zero(t, column.Len())
	assert.Empty(t, column.Values())
	assert.Equal(t, stage.InvalidHandle, ovstage.CodeOf(s.Seal(4)))
}

func TestViewsGoAlongRuns(t *testing.T) {
	s, _ := open(t)
	all, err := s.Prims("/A", "/B", "/C", "/D")
	require.NoError(t, err)
	require.NoError(t, ovstage.Write(all, "p", 1, []int32{1, 2, 3, 4}))
	require.NoError(t, s.Seal(1))
	for _, asked := range []struct {
		paths []string
		runs  map[int][]int32
	}{
		{[]string{"/A", "/B", "/C", "/D"}, map[int][]int32{0: {1, 2, 3, 4}}},
		{[]string{"/B", "/C"}, map[int][]int32{0: {2, 3}}},
		{[]string{"/D", "/A", "/B"}, map[int][]int32{0: {4}, 1: {1, 2}}},
		{[]string{"/Z"}, map[int][]int32{}},
	} {
		prims, err := s.Prims(asked.paths...)
		require.NoError(t, err)
		column, err := ovstage.Read[int32](prims, "p")
		require.NoError(t, err)
		runs := map[int][]int32{}
		column.View(func(first int, rows []int32) { runs[first] = append([]int32(nil), rows...) })
		assert.Equal(t, asked.runs, runs)
	}
}

func TestEarlierOrdinalsAndChanges(t *testing.T) {
	s, prims := open(t)
	require.NoError(t, s.Engine().KeepHistory(5))
	require.NoError(t, ovstage.Write(prims, "p", 1, []int32{1, 2}))
	require.NoError(t, s.Seal(1))
	b, err := s.Prims("/B")
	require.NoError(t, err)
	require.NoError(t, ovstage.Write(b, "p", 2, []int32{20}))
	require.NoError(t, s.Seal(2))
	then, err := ovstage.ReadAt[int32](prims, "p", 1)
	require.NoError(t, err)
	assert.Equal(t, []int32{1, 2}, then.Values())
	changes, err := ovstage.ReadChanges[int32](prims, "p", 2, 2)
	require.NoError(t, err)
	assert.Equal(t, map[string]int32{"/B": 20}, maps.Collect(changes.All()))
	assert.Equal(t, uint64(2), changes.Ordinal)
}

func TestArraysRolesAndTypes(t *testing.T) {
	s, prims := open(t)
	require.NoError(t, ovstage.WriteArrays(prims, "points", 1, [][]float3{{{1, 2, 3}, {4, 5, 6}}, {}},
		ovstage.WithRole(tensor.SemanticPoint), ovstage.WithType("point3f[]")))
	require.NoError(t, ovstage.Write(prims, "on", 1, []bool{true, false}))
	require.NoError(t, s.Seal(1))
	arrays, err := ovstage.ReadArrays[float3](prims, "points")
	require.NoError(t, err)
	assert.Equal(t, map[string][]float3{"/A": {{1, 2, 3}, {4, 5, 6}}, "/B": {}}, arrays)
	assert.Equal(t, map[string]bool{"/A": true, "/B": false}, values[bool](t, prims, "on"))
	_, err = ovstage.ReadArrays[int32](prims, "points")
	require.ErrorContains(t, err, "its values are float32x3[], they can't be read as arrays of int32")
	_, err = ovstage.Read[float3](prims, "points")
	require.ErrorContains(t, err, "its values are float32x3[]")
	list, err := s.Engine().Attributes()
	require.NoError(t, err)
	assert.Equal(t, tensor.SemanticPoint, list[0].Schema.Semantic)
	assert.Equal(t, "point3f[]", list[0].Schema.Type.Name)
}
