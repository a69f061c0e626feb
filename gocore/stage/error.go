package stage

import (
	"errors"
	"fmt"

	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/tensor"
)

// Code classifies a failure. The numbers are those of the C ABI.
type Code uint32

// The codes; their meaning is the C ABI's, including PrimNotFound for a prim that exists although it must not.
const (
	OK                  Code = 0
	InvalidArgument     Code = 1
	InvalidHandle       Code = 2
	NotFound            Code = 3
	PrimNotFound        Code = 4
	WriteFloorViolation Code = 5
	NotSupported        Code = 6
	QueueFull           Code = 7
	EndOfIteration      Code = 8
	OutOfMemory         Code = 9
	LayoutChanged       Code = 10
	Timeout             Code = 11
	OpFailed            Code = 12
	OutOfRange          Code = 13
	Internal            Code = 99
)

// Error is every failure of a stage: a code for programs and a text for people that names the argument, its value and
// what was expected.
type Error struct {
	Code Code
	Text string
}

func (e *Error) Error() string { return e.Text }

// CodeOf is the code of a failure, OK of none. An error that is not a stage's has the code that a stage would give it.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	return own(err).Code
}

func errorf(code Code, format string, args ...any) error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// wrap makes an error of a lower room one of ours, with what was being done in front. An error that is ours stays as it is.
func wrap(err error, format string, args ...any) error {
	if own := (*Error)(nil); errors.As(err, &own) {
		return own
	}
	return prefix(err, format+": ", args...)
}

// prefix is an error with words before its text.
func prefix(err error, format string, args ...any) error {
	own := own(err)
	return &Error{own.Code, fmt.Sprintf(format, args...) + own.Text}
}

// own is an error as one of ours; an error of a lower room gets its code.
func own(err error) *Error {
	if own := (*Error)(nil); errors.As(err, &own) {
		return own
	}
	var exhausted *memory.OutOfMemory
	switch {
	case errors.As(err, &exhausted):
		return &Error{OutOfMemory, err.Error()}
	case errors.Is(err, tensor.ErrUnsupported):
		return &Error{NotSupported, err.Error()}
	}
	return &Error{InvalidArgument, err.Error()}
}
