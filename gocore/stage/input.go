package stage

import (
	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/tensor"
)

// take copies the first n of what a client has lent for the length of the call: it may change meanwhile, so that it is read once,
// before it is judged. The copy is good until the next one, or until the mutex is free.
func (s *Stage) take(lent []uint64, n int) []uint64 {
	if lent == nil {
		return nil
	}
	if cap(s.taken) > mostTaken && n <= mostTaken {
		s.taken = nil
	}
	s.taken = append(s.taken[:0], lent[:n]...)
	return s.taken
}

// mostTaken is how many words are kept for the next call, rather than for the largest that ever came.
const mostTaken = 1 << 13

// selected lists the positions below n whose bit is set.
func selected(mask []uint64, n int) []uint32 {
	set := bitset.Set(mask[:bitset.Words(n)])
	return set.AppendTo(make([]uint32, 0, set.CountIn(0, n)), n)
}

// checkView refuses a tensor that this build can't read.
func checkView(v *tensor.View) error {
	if v.Device.Type != tensor.CPU {
		return errorf(NotSupported, "the tensor is on %s, which this build can't read; copy it to the host first", v.Device)
	}
	if err := v.CheckExtents(); err != nil {
		return own(err)
	}
	return nil
}
