package stage

import (
	"fmt"
	"slices"
	"strings"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

// Missing is an attribute of which a read serves nothing, and why, in words.
type Missing struct {
	Attribute pathdict.Token
	Reason    string
}

// Missing returns one of the attributes of which a read serves nothing, as it was when the read was opened; false beyond the
// last, and where there is no such read. Words are made of that one alone.
func (s *Stage) Missing(id ReadID, index uint64) (Missing, bool) {
	if s.lock() != nil {
		return Missing{}, false
	}
	defer s.mu.Unlock()
	r, ok := s.reads[id]
	if !ok || index >= uint64(len(r.missing)) {
		return Missing{}, false
	}
	m := r.missing[index]
	return Missing{m.attribute, s.say(m)}, true
}

// Bounds of the search for a reason. Every read that serves nothing of an attribute makes it, whether the client asks or not.
const (
	mostLooks  = 1 << 14 // prims that are asked what they carry
	mostOthers = 64      // attributes that are remembered; few are named
	mostNamed  = 6
	mostNear   = 4096 // names that are compared with one that is unknown
)

// absent finds out why a read serves nothing of an attribute. It looks at what the first of the prims carry where none has it.
func (s *Stage) absent(q query.Query, name pathdict.Token, r Range) absence {
	a := s.attributes[name]
	m := absence{attribute: name, span: r, floor: s.floorOf(a), unlisted: q.Prims.Len() == 0}
	if m.unlisted {
		return m
	}
	if m.unknown = (a == nil || len(a.columns) == 0) && !s.isDerived(name); !m.unknown && a != nil {
		m.carried = a.carriers.Any(q.Prims.Indices())
		if m.carried && r.HasStart { // the usual case: a client that asks again and again what changed
			return m
		}
		s.lookAt(a, q, &m)
	}
	if m.unsealed || m.gone || m.carried {
		return m
	}
	if m.absent = !slices.ContainsFunc(q.Prims.Indices(), s.exists); !m.absent {
		m.others = s.carriedBy(q.Prims.Indices(), name)
	}
	return m
}

// lookAt finds what there is of an attribute on the prims of a query, though the read does not serve it.
func (s *Stage) lookAt(a *attribute, q query.Query, m *absence) {
	for _, c := range a.columns {
		b, err := c.bindings.Of(c.Column, q.Prims)
		if err != nil {
			continue // for want of memory: then there is less to say
		}
		if at, found := c.NewestUnsealed(b.Rows()); found {
			m.unsealed, m.newest = true, max(m.newest, at)
		}
		if at, found := c.LastDeleted(b.Rows()); found {
			m.gone, m.deleted = true, max(m.deleted, at)
		}
	}
}

// carriedBy returns attributes that the first of some prims carry.
func (s *Stage) carriedBy(paths []uint32, but pathdict.Token) (names []pathdict.Token) {
	names = s.prims.Carried(paths[:min(len(paths), mostLooks)])
	names = slices.DeleteFunc(names, func(name pathdict.Token) bool { return name == but })
	return names[:min(len(names), mostOthers)]
}

// say puts an absence into words.
func (s *Stage) say(m absence) string {
	switch {
	case m.unlisted:
		return "the query lists no prims"
	case m.frozen:
		return fmt.Sprintf("the snapshot has no value of it for these prims; its floor was %d", m.floor)
	case m.span.HasStart && m.gone && !m.carried:
		return fmt.Sprintf("%s, which is not in the range [%d, %d]", deletedAt(m.deleted), m.span.Start, m.span.End)
	case m.span.HasStart && m.carried:
		return fmt.Sprintf("no prim of the query changed it in [%d, %d]; the floor is %d", m.span.Start, m.span.End, m.floor)
	case m.unsealed && m.gone:
		return fmt.Sprintf("%s, and written again but not sealed: newest write %d, floor %d; advance the floor first", deletedAt(m.deleted), m.newest, m.floor)
	case m.unsealed:
		return fmt.Sprintf("not sealed: newest write %d, floor %d; advance the floor first", m.newest, m.floor)
	case m.gone:
		return deletedAt(m.deleted)
	case m.carried:
		return fmt.Sprintf("no value as of ordinal %d: the prims got it later, the floor is %d", m.span.End, m.floor)
	}
	return s.sayNone(m)
}

func deletedAt(ordinal uint64) string {
	if ordinal == 0 {
		return "deleted"
	}
	return fmt.Sprintf("deleted at %d", ordinal)
}

// sayNone is for attributes that none of the prims has.
func (s *Stage) sayNone(m absence) string {
	text := "no prim has it; "
	if m.absent {
		text += "none of the prims of the query exists"
	} else {
		text += "there are " + s.listed(m.others)
	}
	if !m.unknown {
		return text
	}
	text += " (unknown attribute"
	if near := s.nearest(m.attribute); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text + ")"
}

// listed names attributes, in the order of the alphabet.
func (s *Stage) listed(names []pathdict.Token) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = s.quoted(name)
	}
	slices.Sort(texts)
	if more := len(texts) - mostNamed; len(texts) == mostOthers {
		return strings.Join(texts[:mostNamed], ", ") + " and more"
	} else if more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:mostNamed], ", "), more)
	}
	return strings.Join(texts, ", ")
}

// nearest is the stored name that differs least from one that is unknown, if it differs little or goes on where that ends.
func (s *Stage) nearest(unknown pathdict.Token) string {
	wrong := s.text(unknown)
	best, least := "", len(wrong)/3+1
	looked := 0
	for name, a := range s.attributes {
		if looked++; looked > mostNear {
			break
		}
		text := s.text(name)
		if len(a.columns) == 0 || len(text) > 4*len(wrong)+16 {
			continue
		}
		distance := edits(wrong, text, least)
		if len(wrong) >= 3 && (strings.HasPrefix(text, wrong) || strings.HasSuffix(text, ":"+wrong)) {
			distance = 1
		}
		if distance < least || distance == least && text < best {
			best, least = text, distance
		}
	}
	return best
}

// edits is the number of bytes to insert, drop or replace, letter case aside; where it is above most, some number above most.
func edits(a, b string, most int) int {
	const longest = 128
	if len(a) > longest || len(b) > longest || max(len(a)-len(b), len(b)-len(a)) > most {
		return longest + most
	}
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before := row[0]
		row[0] = i + 1
		for j := range b {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
		if least := slices.Min(row); least > most {
			return least
		}
	}
	return row[len(b)]
}
