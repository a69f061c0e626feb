package pathdict

import (
	"fmt"
	"strconv"
)

// Error is the text of a refused call. It names the entry at fault, its value and what was expected.
type Error string

func (e Error) Error() string { return string(e) }

// ErrUnknownPath is the whole text for a path handle that is 0 or not of this dictionary: clients compare it.
const ErrUnknownPath Error = "Prim path handle was not found in this dictionary"

const (
	errFull   Error = "The path dictionary is full: it holds 4294967294 names"
	errClosed Error = "The path dictionary is closed: it ended with the last stage of the process"
)

func refuse(format string, args ...any) Error { return Error(fmt.Sprintf(format, args...)) }

// quote shows a value that a caller gave, shortened to what a person reads.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > most-4 && s[cut]&0xC0 == 0x80 { // not in the middle of a character
		cut--
	}
	return fmt.Sprintf("%s... (%d bytes)", strconv.Quote(s[:cut]), len(s))
}

// room refuses an out slice that is too short for the entries.
func room(out, entries int) error {
	if out < entries {
		return refuse("out must have room for %d entries, it has %d", entries, out)
	}
	return nil
}
