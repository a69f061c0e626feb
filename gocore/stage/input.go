package stage

import (
	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/tensor"
)

// take copies the first n words of the client's memory. The client may change its memory during the call, so it is read once,
// before it is judged. The copy is good until the next take, or until the mutex is free.
func (s *Stage) take(given []uint64, n int) []uint64 {
	if given == nil {
		return nil
	}
	if cap(s.taken) > mostTaken && n <= mostTaken {
		s.taken = nil
	}
	s.taken = append(s.taken[:0], given[:n]...)
	return s.taken
}

// mostTaken is the largest buffer, in words, that is kept for the next call.
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
