package tensor

import (
	"errors"
	"fmt"
)

// Every error of this package is one of two kinds, told apart with errors.Is. The texts say what was found and what was
// expected; the caller adds which argument it was.
var (
	// ErrInvalid: the description contradicts itself or the rules; no implementation could take it.
	ErrInvalid = errors.New("invalid tensor")
	// ErrUnsupported: a legal description of something that columns do not store.
	ErrUnsupported = errors.New("unsupported tensor")
)

// refusal is an error whose text is for people and whose kind is for errors.Is.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

func invalid(format string, args ...any) error {
	return &refusal{ErrInvalid, fmt.Sprintf(format, args...)}
}

func unsupported(format string, args ...any) error {
	return &refusal{ErrUnsupported, fmt.Sprintf(format, args...)}
}
