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

// For clients that never release a failed operation: the newest maxTexts failures keep their texts, the newest maxFailed
// are known as failures. Older ones are forgotten.
const (
	maxTexts  = 4096
	maxFailed = 1 << 20

	// minForgotten is the number of forgotten failures below which they may stay in the list.
	minForgotten = 64
)

// failures are the finished operations that failed, until they are forgotten.
type failures struct {
	errors   map[uint64]failure
	order    []uint64 // by age; may name some that were forgotten
	texts    int      // order[:texts] have lost their texts
	textless map[Code]*Error
}

// failure is how an operation ended, and whether anybody has asked.
type failure struct {
	*Error
	asked bool
}

// add records a failure.
func (f *failures) add(op uint64, err *Error) {
	f.errors[op] = failure{Error: err}
	f.order = append(f.order, op)
	if oldest := f.order[f.texts]; len(f.order)-f.texts > maxTexts {
		if lost, ok := f.errors[oldest]; ok {
			f.errors[oldest] = failure{f.withoutText(lost.Code), lost.asked}
		}
		f.texts++
	}
	if len(f.order) > maxFailed {
		delete(f.errors, f.order[0])
		f.order = f.order[1:]
		f.texts--
	}
}

// forget drops a failure. The list by age is made anew once most of it names failures that were forgotten.
func (f *failures) forget(op uint64) {
	delete(f.errors, op)
	if len(f.order) < minForgotten+2*len(f.errors) {
		return
	}
	order, texts := make([]uint64, 0, len(f.errors)), 0
	for i, known := range f.order {
		if _, kept := f.errors[known]; kept {
			order = append(order, known)
			if i < f.texts {
				texts++
			}
		}
	}
	f.order, f.texts = order, texts
}

// withoutText is one error for all failures of a code that have lost their texts: there may be a million.
func (f *failures) withoutText(code Code) *Error {
	if f.textless[code] == nil {
		if f.textless == nil {
			f.textless = map[Code]*Error{}
		}
		f.textless[code] = errorf(code, "the operation failed; only the newest %d failures keep their texts, release operations sooner", maxTexts)
	}
	return f.textless[code]
}

// succeed numbers an operation that has run.
func (s *Stage) succeed() uint64 { return atomic.AddUint64(s.ops.Issued, 1) }

// fail numbers an operation that was accepted and then failed.
func (s *Stage) fail(err *Error) uint64 {
	op := s.succeed()
	s.failed.add(op, err)
	atomic.StoreUint64(s.ops.Failed, uint64(len(s.failed.errors)))
	return op
}

// OpError returns how an operation failed, or false if it did not. Whoever calls it has asked.
func (s *Stage) OpError(op uint64) (*Error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.failed.errors[op]
	if ok && !f.asked {
		s.failed.errors[op] = failure{f.Error, true}
	}
	return f.Error, ok
}

// OpFailed reports whether an operation failed, which is not asking.
func (s *Stage) OpFailed(op uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, failed := s.failed.errors[op]
	return failed
}

// ForgetOp drops the record of a failure. It returns the failure if nobody has asked for it.
func (s *Stage) ForgetOp(op uint64) (unasked *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.failed.errors[op]; ok && !f.asked {
		unasked = f.Error
	}
	s.failed.forget(op)
	atomic.StoreUint64(s.ops.Failed, uint64(len(s.failed.errors)))
	return unasked
}

// Unasked calls visit for every failure on record for which nobody has asked, oldest first.
func (s *Stage) Unasked(visit func(op uint64, err *Error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range s.failed.order {
		if f, ok := s.failed.errors[op]; ok && !f.asked {
			visit(op, f.Error)
		}
	}
}
