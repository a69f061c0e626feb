// Package invariants holds what must be true whatever a client does, as code that costs nothing: with the build tag
// invariants it is checked, without it the compiler drops it. `./build.sh test go` sets the tag where the race detector runs.
//
//	if invariants.Enabled {
//		invariants.Check(end <= extent, "rows end at %d of %d", end, extent)
//	}
//
// With the tag the memory of blocks that are given up is filled with 0xCC as well, and protected (package memory).
package invariants

import "fmt"

// Check panics with a text when something does not hold that must.
func Check(holds bool, format string, args ...any) {
	if !holds {
		panic("invariant: " + fmt.Sprintf(format, args...))
	}
}
