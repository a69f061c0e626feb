package stage

import (
	"slices"
	"strings"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// MaxName is the largest number of bytes of an attribute's name.
const MaxName = 4096

// aliases are second names of stored columns, as the interface has them.
var aliases = map[string]string{"omni:fabric:localMatrix": "omni:xform"}

// derived names the attributes that follow from the paths of prims and can't be written.
var derived = []string{"usd-path", "usd-parent", "usd-children", "usd-active"}

// tokenColumns are the recorded attributes whose schema the interface fixes: token ids, one or an array per prim.
var tokenColumns = map[string]bool{"usd-prim-type": false, "usd-schemas": true}

// ruled reports whether the interface has a rule for a name: it is an alias, can't be written, or has a fixed schema.
func (s *Stage) ruled(name pathdict.Token) bool {
	text := s.text(name)
	_, alias := aliases[text]
	_, fixed := tokenColumns[text]
	return alias || fixed || slices.Contains(derived, text)
}

// known returns the attribute of that name, which it creates if need be.
func (s *Stage) known(name pathdict.Token) *attribute {
	a := s.attributes[name]
	if a == nil {
		a = &attribute{name: name, plain: !s.ruled(name)}
		s.attributes[name] = a
	}
	return a
}

// isDerived reports whether an attribute follows from the paths of prims.
func (s *Stage) isDerived(name pathdict.Token) bool { return slices.Contains(derived, s.text(name)) }

// stored returns the name under which the column of an attribute is kept.
func (s *Stage) stored(name pathdict.Token) pathdict.Token {
	if a := s.attributes[name]; a.isPlain() {
		return name
	}
	if target, ok := aliases[s.text(name)]; ok {
		if token, err := s.dict.Token(target); err == nil {
			return token
		}
	}
	return name
}

// storedAll is stored for a list of names.
func (s *Stage) storedAll(names []pathdict.Token) []pathdict.Token {
	stored := make([]pathdict.Token, len(names))
	for i, name := range names {
		stored[i] = s.stored(name)
	}
	return stored
}

// find returns the attribute that a client means by a name, nil if there is none.
func (s *Stage) find(name pathdict.Token) *attribute { return s.attributes[s.stored(name)] }

// typeOf is a type by the token of its name, the zero type for none.
func (s *Stage) typeOf(name pathdict.Token) column.Type {
	if name == 0 {
		return column.Type{}
	}
	return column.Type{Token: uint64(name), Name: s.text(name)}
}

// text is an attribute's name.
func (s *Stage) text(name pathdict.Token) string {
	text, _ := s.dict.TokenString(name)
	return text
}

// quoted is an attribute's name for error texts, cut where it is long.
func (s *Stage) quoted(name pathdict.Token) string {
	const most = 200
	text := s.text(name)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// about says in an error which attribute it is about.
func (s *Stage) about(name pathdict.Token, err error) error {
	return prefix(err, "attribute %q: ", s.quoted(name))
}

// path is a prim's path for error texts.
func (s *Stage) path(p pathdict.Path) string {
	text, err := s.dict.PathString(p)
	if err != nil {
		return "(unknown path)"
	}
	return text
}

// checkNames refuses tokens that the dictionary never minted, and texts that are too long for a name.
func (s *Stage) checkNames(argument string, names []pathdict.Token) error {
	for i, name := range names {
		ok := s.dict.Stay(name)
		switch text, _ := s.dict.TokenString(name); {
		case !ok || text == "":
			return errorf(InvalidArgument,
				"%s[%d]: %d is not a token of this stage's dictionary; intern the attribute name first", argument, i, name)
		case len(text) > MaxName:
			return errorf(InvalidArgument, "%s[%d]: the name has %d bytes, expected at most %d", argument, i, len(text), MaxName)
		}
	}
	return nil
}
