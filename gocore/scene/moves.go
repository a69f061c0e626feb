package scene

import (
	"slices"
	"strings"
	"unsafe"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// moves says where the paths of a clone's source are in each of its targets. A path is the source's if its components begin
// with those of the source; a property of the source itself is the source's too, though it differs in the last component.
type moves struct {
	dict *pathdict.Dictionary
	from uint32

	known []bool   // by path - from: in the source and on the list
	paths []uint32 // ascending; with each path, all between it and the source
	slot  []int32  // by path - from: index in paths
	to    []uint32 // len(paths) for each target

	properties []uint32 // of the source itself
	ownTo      []uint32 // len(properties) for each target
}

// add lists a path of the source, and what lies between.
func (m *moves) add(path uint32) {
	if missing := int(path-m.from) + 1 - len(m.known); missing > 0 {
		m.known = append(m.known, make([]bool, missing)...)
	}
	for ; !m.known[path-m.from]; path = m.dict.ParentAt(path) {
		m.known[path-m.from] = true
	}
}

// addTargets lists those paths among values that have to move.
func (m *moves) addTargets(values ids) {
	values.each(func(id *pathdict.Path) {
		path, ok := m.dict.Index(*id)
		switch {
		case !ok:
		case m.inside(path):
			m.add(path)
		case m.property(path) && !slices.Contains(m.properties, path):
			m.properties = append(m.properties, path)
		}
	})
}

func (m *moves) inside(path uint32) bool {
	for path > m.from {
		if int(path-m.from) < len(m.known) && m.known[path-m.from] {
			return true
		}
		path = m.dict.ParentAt(path)
	}
	return path == m.from
}

// property reports whether a path is /A.name for the source /A.
func (m *moves) property(path uint32) bool {
	return m.dict.ParentAt(path) == m.dict.ParentAt(m.from) && strings.HasPrefix(m.dict.NameAt(path), m.dict.NameAt(m.from)+".")
}

func (m *moves) graftProperties(onto []uint32) error {
	if len(m.properties) == 0 {
		return nil
	}
	var texts []string
	for _, target := range onto {
		text, err := m.dict.PathString(m.dict.PathAt(target))
		if err != nil {
			return err
		}
		for _, path := range m.properties {
			texts = append(texts, text+strings.TrimPrefix(m.dict.NameAt(path), m.dict.NameAt(m.from)))
		}
	}
	paths := make([]pathdict.Path, len(texts))
	if err := m.dict.Paths(texts, paths); err != nil {
		return err
	}
	for _, path := range paths {
		index, _ := m.dict.Index(path)
		m.ownTo = append(m.ownTo, index)
	}
	return nil
}

// of is where a listed path is in the target k.
func (m *moves) of(k int, path uint32) uint32 {
	return m.to[k*len(m.paths)+int(m.slot[path-m.from])]
}

// move replaces the paths of the source by the paths of the target k.
func (m *moves) move(k int, values ids) {
	values.each(func(id *pathdict.Path) {
		path, ok := m.dict.Index(*id)
		if !ok {
			return
		}
		if path >= m.from && int(path-m.from) < len(m.known) && m.known[path-m.from] {
			*id = m.dict.PathAt(m.of(k, path))
		} else if at := slices.Index(m.properties, path); at >= 0 {
			*id = m.dict.PathAt(m.ownTo[k*len(m.properties)+at])
		}
	})
}

// ids are the paths in the values of an array.
type ids struct {
	words  []pathdict.Path
	stride int
}

// idsIn looks at the values of a row as paths; there are none in a column that holds something else.
func idsIn(values []byte, schema column.Schema) ids {
	stride := pathStride(schema)
	if stride == 0 {
		return ids{}
	}
	return ids{pathsIn(values), stride}
}

// pathStride is the distance of the paths in the values of an array column, in words; 0 where there are none.
func pathStride(schema column.Schema) int {
	switch schema.Semantic {
	case tensor.SemanticRelationshipPathID, tensor.SemanticConnectionPathID:
		return int(schema.DType.Lanes)
	}
	return 0
}

// pathsIn looks at bytes as path handles, which they were written as.
func pathsIn(values []byte) []pathdict.Path {
	return unsafe.Slice((*pathdict.Path)(unsafe.Pointer(unsafe.SliceData(values))), len(values)/8)
}

func (v ids) each(f func(id *pathdict.Path)) {
	for i := 0; i < len(v.words); i += v.stride {
		f(&v.words[i])
	}
}
