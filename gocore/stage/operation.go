package stage

import (
	"sync/atomic"
)

// succeed numbers an operation that has run.
func (s *Stage) succeed() uint64 { return atomic.AddUint64(s.ops.Issued, 1) }

// fail numbers an operation that was accepted and then failed.
func (s *Stage) fail(err error) uint64 {
	op := s.succeed()
	s.failed.add(op, err)
	atomic.StoreUint64(s.ops.Failed, uint64(len(s.failed.errors)))
	return op
}

// OpError returns how an operation failed, nil if it did not. The failure counts as asked about from then on.
func (s *Stage) OpError(op uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.failed.errors[op]
	if !ok {
		return nil
	}
	if !f.asked {
		s.failed.errors[op] = failure{f.Error, true}
	}
	return f.Error
}

// OpFailed reports whether an operation failed, which is not asking.
func (s *Stage) OpFailed(op uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, failed := s.failed.errors[op]
	return failed
}

// ForgetOp drops the record of a failure. It returns the failure if the client has not asked for it.
func (s *Stage) ForgetOp(op uint64) (unasked error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.failed.errors[op]; ok && !f.asked {
		unasked = f.Error
	}
	s.failed.forget(op)
	atomic.StoreUint64(s.ops.Failed, uint64(len(s.failed.errors)))
	return unasked
}

// Unasked calls visit for every failure on record for which the client has not asked, oldest first.
func (s *Stage) Unasked(visit func(op uint64, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range s.failed.order {
		if f, ok := s.failed.errors[op]; ok && !f.asked {
			visit(op, f.Error)
		}
	}
}
