package stage

import "fmt"

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

// failure is how an operation ended, and whether the client has asked.
type failure struct {
	*Error
	asked bool
}

// add records a failure.
func (f *failures) add(op uint64, err error) {
	f.errors[op] = failure{Error: own(err)}
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
		f.textless[code] = &Error{code, fmt.Sprintf("the operation failed; only the newest %d failures keep their texts, release operations sooner", maxTexts)}
	}
	return f.textless[code]
}
