package pathdict

import (
	"fmt"
	"strconv"
)

// Error is the text of a refused call. It names the entry at fault, its value and what was expected. A call that runs out of
// memory returns a *memory.OutOfMemory instead.
type Error string

func (e Error) Error() string { return string(e) }

// ErrUnknownPath is the whole text for a path handle that is 0 or was not made by this dictionary. Clients compare it.
const ErrUnknownPath Error = "Prim path handle was not found in this dictionary"

const errClosed Error = "The path dictionary is closed: it ended with the last stage that used it"

func refuse(format string, args ...any) Error { return Error(fmt.Sprintf(format, args...)) }

// quote shows a value that a caller gave, shortened to what a person reads.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > most-3 && s[cut]&0xC0 == 0x80 { // not in the middle of a character
		cut--
	}
	return fmt.Sprintf("%s..., %d bytes", strconv.Quote(s[:cut]), len(s))
}

// checkRoom refuses an out slice that is too short for the entries.
func checkRoom(room, entries int) error {
	if room < entries {
		return refuse("out must have room for all %d entries: it has room for %d", entries, room)
	}
	return nil
}

// checkGrowth refuses a new record when the dictionary is closed, or holds so many that an index plus one no longer fits a
// table slot.
func (d *Dictionary) checkGrowth(length uint32) error {
	if d.closed {
		return errClosed
	}
	if length >= full {
		return refuse("The path dictionary is full: it holds %d names", length)
	}
	return nil
}
