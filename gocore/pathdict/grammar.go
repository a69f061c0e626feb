package pathdict

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// A path is "/" or absolute, without trailing slash and without empty, "." and ".." components. Everything else is allowed:
// a property path such as "/A.attr" is a path whose last component is "A.attr".

// checkTokens says what is wrong with the first faulty token string.
func checkTokens(entries []string) error {
	for i, s := range entries {
		switch {
		case s == "":
			return refuse("Token string must be non-empty (entry %d): token 0 stands for the empty string", i)
		case strings.IndexByte(s, 0) >= 0:
			return refuse("Token string contains embedded NUL (entry %d, %s): remove the NUL byte", i, quote(s))
		case !utf8.ValidString(s):
			return refuse("Token string must be valid UTF-8 (entry %d, %s): encode the text as UTF-8", i, quote(s))
		case len(s) >= math.MaxUint32:
			return refuse("Token string must be shorter than 4 GiB (entry %d, %s)", i, quote(s))
		}
	}
	return nil
}

// checkPaths says what is wrong with the first faulty path string. Batches are mostly sorted, so what an entry shares
// with the entry before it, up to the last slash, is not looked at again.
func checkPaths(entries []string) error {
	before := ""
	for i, s := range entries {
		from := strings.LastIndexByte(before[:sharedPrefix(before, s)], '/')
		if !wellFormed(s, max(from, 0)) {
			return explain(s, i)
		}
		before = s
	}
	return nil
}

// wellFormed reports whether s obeys the grammar, given that s[:from] is the beginning of a path that does and that a slash
// is expected at from.
func wellFormed(s string, from int) bool {
	if len(s) > 2*MaxDepth && (len(s) >= math.MaxUint32 || strings.Count(s, "/") > MaxDepth) {
		return false
	}
	tail := s[from:]
	if tail == "" || tail[0] != '/' {
		return false
	}
	if len(s) == 1 {
		return true
	}
	ascii := true
	start := 1 // of the present component
	for i := 1; i < len(tail); i++ {
		switch c := tail[i]; {
		case c == '/':
			if reserved(tail[start:i]) {
				return false
			}
			start = i + 1
		case c == 0:
			return false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return !reserved(tail[start:]) && (ascii || utf8.ValidString(tail))
}

// reserved reports whether a component is one that no path may have.
func reserved(component string) bool {
	return len(component) <= 2 && (component == "" || component == "." || component == "..")
}

// explain says what is wrong with s, which is not well-formed.
func explain(s string, entry int) error {
	switch {
	case s == "":
		return refuse(`Path string must be non-empty (entry %d): the root is "/"`, entry)
	case strings.IndexByte(s, 0) >= 0:
		return refuse("Path string contains embedded NUL (entry %d, %s): remove the NUL byte", entry, quote(s))
	case !utf8.ValidString(s):
		return refuse("Path string must be valid UTF-8 (entry %d, %s): encode the text as UTF-8", entry, quote(s))
	case s[0] != '/':
		return refuse(`Path string must start with "/" (entry %d, %s): paths are absolute, for example "/World/Cube"`, entry, quote(s))
	case len(s) > 1 && s[len(s)-1] == '/':
		return refuse(`Path string must not end with "/" (entry %d, %s): remove the trailing slash`, entry, quote(s))
	case strings.Contains(s, "//"):
		return refuse(`Path string must not have an empty component (entry %d, %s): write one "/" between components`, entry, quote(s))
	case len(s) >= math.MaxUint32:
		return refuse("Path string must be shorter than 4 GiB (entry %d, %s)", entry, quote(s))
	}
	if depth := strings.Count(s, "/"); depth > MaxDepth {
		return refuse("Path string must have at most %d components (entry %d, %s): it has %d", MaxDepth, entry, quote(s), depth)
	}
	return refuse(`Path string must not have "." or ".." components (entry %d, %s): write the path that they lead to`, entry, quote(s))
}

// sharedPrefix returns the number of leading bytes that a and b have in common.
func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	x, y := unsafe.Slice(unsafe.StringData(a), n), unsafe.Slice(unsafe.StringData(b), n)
	i := 0
	for i+8 <= n && binary.LittleEndian.Uint64(x[i:]) == binary.LittleEndian.Uint64(y[i:]) {
		i += 8
	}
	for i < n && x[i] == y[i] {
		i++
	}
	return i
}
