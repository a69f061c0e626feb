package pathdict

import (
	"math"
	"sync/atomic"

	"ovstage.dev/ovstage/gocore/bitset"
)

// What a dictionary knows of the dense indices of its records, beside the records.

// ages tells apart what has had one index after another. Most dictionaries are never compacted, and have none: then every age
// is 0.
type ages struct{ vector[uint32] }

// noAge is the age of an index that stands for nothing.
const noAge = math.MaxUint32

func (a *ages) of(index uint32) uint32 {
	if !a.has(uint64(index)) {
		return 0
	}
	return atomic.LoadUint32(a.at(index))
}

// set changes an age that reach has made room for.
func (a *ages) set(index, age uint32) { atomic.StoreUint32(a.at(index), age) }

// reach makes room for the ages of a number of records.
func (a *ages) reach(records uint32) error {
	for a.length < records {
		if err := a.reserve(); err != nil {
			return err
		}
		a.push(0)
	}
	a.reveal()
	return nil
}

// flags is a bit for each record, which may be set without a lock.
type flags struct{ vector[bitset.Word] }

func (f *flags) has(index uint32) bool {
	return f.vector.has(uint64(index/64)) && f.at(index/64).Has(index)
}

// set needs that reach has made room.
func (f *flags) set(index uint32) { f.at(index / 64).Add(index) }

func (f *flags) reach(index uint32) error {
	for f.length <= index/64 {
		if err := f.reserve(); err != nil {
			return err
		}
		f.push(0)
		f.reveal()
	}
	return nil
}

// marks is a bit for each of the records that there were at one time. Those that came later count as marked.
type marks struct{ bitset.Shared }

func newMarks(records uint32) marks { return marks{bitset.NewShared(int(records))} }

func (m marks) set(index uint32) {
	if m.Reaches(index) {
		m.Add(index)
	}
}

func (m marks) has(index uint32) bool { return !m.Reaches(index) || m.Has(index) }

// vacancies are the indices that have no path any more.
type vacancies struct {
	bitset.Set
	count  int
	next   uint32 // where the search goes on
	barren uint32 // there are none above it
}

func (v *vacancies) add(index uint32) {
	v.Set = v.Grow(int(index) + 1)
	v.Add(int(index))
	v.count++
	v.barren = max(v.barren, index)
}

// above takes out an index that is larger than that of the parent, as those of children are. It goes on from the last one, so
// that of many children each costs next to nothing.
func (v *vacancies) above(parent uint32) (index uint32, ok bool) {
	if v.count == 0 || parent >= v.barren {
		return 0, false
	}
	found := v.First(int(max(v.next, parent+1)))
	if found < 0 {
		if found = v.First(int(parent + 1)); found < 0 {
			v.barren = parent
			return 0, false
		}
	}
	v.Remove(found)
	v.count--
	v.next = uint32(found) + 1
	return uint32(found), true
}
