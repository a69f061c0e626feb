package stage

import "sync/atomic"

// OpLog numbers a stage's operations. The words live where a client can watch them without asking the stage: the C ABI
// keeps them in C memory and answers "is operation n finished?" there. Operations run inline, so one is finished as
// soon as it has a number.
type OpLog struct {
	Issued *uint64 // number of the last operation
	Failed *uint64 // how many failures are on record; zero means that every operation succeeded
}

// NewOpLog returns a log with words of its own.
func NewOpLog() *OpLog { return &OpLog{new(uint64), new(uint64)} }

// maxFailed bounds the failures on record for clients that never ask; the oldest go first.
const maxFailed = 4096

// succeed numbers an operation that has run.
func (s *Stage) succeed() uint64 { return atomic.AddUint64(s.ops.Issued, 1) }

// fail numbers an operation that was accepted and then failed.
func (s *Stage) fail(err *Error) uint64 {
	op := s.succeed()
	s.failed[op] = err
	if len(s.failed) > maxFailed {
		oldest := op
		for id := range s.failed {
			oldest = min(oldest, id)
		}
		delete(s.failed, oldest)
	}
	atomic.StoreUint64(s.ops.Failed, uint64(len(s.failed)))
	return op
}

// OpError returns how an operation failed, or false if it did not.
func (s *Stage) OpError(op uint64) (*Error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err, ok := s.failed[op]
	return err, ok
}

// ForgetOp drops the record of a failure.
func (s *Stage) ForgetOp(op uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failed, op)
	atomic.StoreUint64(s.ops.Failed, uint64(len(s.failed)))
}
