package pathdict

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// A path is "/", or it is absolute, without trailing slash and without empty, "." and ".." components. All else is allowed
// in a component: a property path such as "/A.attr" is a path whose last component is "A.attr".

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
		case len(s) > MaxToken:
			return refuse("Token string must have at most %d bytes (entry %d, %s)", MaxToken, i, quote(s))
		}
	}
	return nil
}

// checkPaths says what is wrong with the first faulty path string. Batches are mostly sorted, so what an entry shares with
// the entry before it, up to the last slash, is not looked at again.
func checkPaths(entries []string) error {
	before := ""
	for i, s := range entries {
		from := strings.LastIndexByte(s[:sharedPrefix(before, s)], '/')
		if !wellFormed(s, max(from, 0)) {
			return explainPath(s, i)
		}
		before = s
	}
	return nil
}

// wellFormed reports whether s obeys the grammar. What comes before from, where there is a slash or from is 0, is known to
// begin a path that does.
func wellFormed(s string, from int) bool {
	if len(s) > MaxPath || len(s) > 2*MaxDepth && strings.Count(s, "/") > MaxDepth {
		return false
	}
	tail := s[from:]
	if tail == "" || tail[0] != '/' {
		return false
	}
	if s == "/" {
		return true
	}
	ascii, start := true, 1
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

// reserved reports whether no path may have this component.
func reserved(component string) bool {
	return len(component) <= 2 && (component == "" || component == "." || component == "..")
}

// explainPath says what is wrong with s, which is not well-formed.
func explainPath(s string, entry int) error {
	switch {
	case s == "":
		return refuse(`Path string must be non-empty (entry %d): the root is "/"`, entry)
	case strings.IndexByte(s, 0) >= 0:
		return refuse("Path string contains embedded NUL (entry %d, %s): remove the NUL byte", entry, quote(s))
	case !utf8.ValidString(s):
		return refuse("Path string must be valid UTF-8 (entry %d, %s): encode the text as UTF-8", entry, quote(s))
	case s[0] != '/':
		return refuse(`Path string must start with "/" (entry %d, %s): paths are absolute, as "/World/Cube" is`,
			entry, quote(s))
	case strings.Contains(s, "//"):
		return refuse(`Path string must not have an empty component (entry %d, %s): write "/" once between components`,
			entry, quote(s))
	case s[len(s)-1] == '/':
		return refuse(`Path string must not end with "/" (entry %d, %s): remove the trailing slash`, entry, quote(s))
	case len(s) > MaxPath:
		return refuse("Path string must have at most %d bytes (entry %d, %s)", MaxPath, entry, quote(s))
	}
	if depth := strings.Count(s, "/"); depth > MaxDepth {
		return refuse("Path string must have at most %d components (entry %d, %s): it has %d",
			MaxDepth, entry, quote(s), depth)
	}
	return refuse(`Path string must not have "." or ".." components (entry %d, %s): write the path they lead to`, entry, quote(s))
}

// checkComponents says what is wrong with the first faulty entry of PathsFromTokens.
func (d *Dictionary) checkComponents(tokens []Token, counts []int) error {
	rest := tokens
	for entry, count := range counts {
		switch {
		case count < 0 || count > len(rest):
			return refuse("Token count must be from 0 to %d, the tokens that are left (entry %d, count %d)",
				len(rest), entry, count)
		case count > MaxDepth:
			return refuse("Path must have at most %d components (entry %d): it has %d", MaxDepth, entry, count)
		}
		for i, token := range rest[:count] {
			ok := d.Stay(token) // its text is looked at
			name, _ := d.TokenString(token)
			switch {
			case token == 0 || !ok:
				return refuse("Token handle was not found in this dictionary (entry %d, component %d, handle %d): "+
					"intern the string first", entry, i, token)
			case reserved(name) || strings.IndexByte(name, '/') >= 0:
				return refuse(`Path component must be without "/" and not be "." or ".." (entry %d, component %d, %s)`,
					entry, i, quote(name))
			}
		}
		rest = rest[count:]
	}
	if len(rest) > 0 {
		return refuse("Token counts must add up to the number of tokens, %d: they add up to %d",
			len(tokens), len(tokens)-len(rest))
	}
	return nil
}

// sharedPrefix returns how many leading bytes a and b have in common.
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
