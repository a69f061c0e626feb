package script

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unsafe"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/scene"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

// player is a script at play: a stage and what the script has given names to.
type player struct {
	dict    *pathdict.Dictionary
	stage   *stage.Stage
	scene   *scene.Scene
	queries map[string]stage.QueryID
	maps    map[string]*session
	held    map[string][]*stage.Group
	newer   bool  // the interface level is 0.3, which C and Python have
	blocks  int64 // alive before the script
}

// session is a map of the script.
type session struct {
	id      stage.MapID
	array   bool
	content bool // the buffer starts with something that can be shown
	groups  []*stage.MapGroup
	views   []memory.Block // kept beyond the commit
}

func open() *player {
	p := &player{blocks: memory.Counters().Blocks(), dict: pathdict.New(0)}
	p.queries, p.maps, p.held = map[string]stage.QueryID{}, map[string]*session{}, map[string][]*stage.Group{}
	p.stage = stage.New("script", p.dict, nil)
	var err error
	if p.scene, err = scene.New(p.stage, p.dict); err != nil {
		panic(err)
	}
	return p
}

// close gives everything back and wants nothing to be alive then.
func (p *player) close(err error) error {
	for _, groups := range p.held {
		p.release(groups)
	}
	for _, m := range p.maps {
		_ = p.stage.Abort(m.id)
		m.drop(p.dict)
	}
	for _, q := range p.queries {
		_, _ = p.stage.ReleaseQuery(q)
	}
	c := p.stage.Counters()
	p.stage.Close()
	p.dict.Close()
	if alive := memory.Counters().Blocks() - p.blocks; err == nil && (c.LiveQueries+c.LiveReads+c.LiveMaps != 0 || alive != 0) {
		return fmt.Errorf("still alive at the end: %d queries, %d reads, %d maps, %d blocks", c.LiveQueries, c.LiveReads, c.LiveMaps, alive)
	}
	return err
}

func (p *player) release(groups []*stage.Group) {
	for _, g := range groups {
		g.Release(p.dict)
	}
}

func (m *session) drop(dict *pathdict.Dictionary) {
	for _, g := range m.groups {
		if g != nil {
			g.Release(dict)
		}
	}
	for _, view := range m.views {
		view.Release()
	}
}

// command is a line of a script, taken apart.
type command struct {
	args    []string          // words without a key
	options map[string]string // words key=value
}

// do plays one line. The error is a mistake of the script; what the stage refuses is an answer.
func (p *player) do(line string) ([]string, error) {
	list, err := words(line)
	if err != nil {
		return nil, err
	}
	c := command{options: map[string]string{}}
	for _, word := range list[1:] {
		if key, value, ok := strings.Cut(word, "="); ok && key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz") == "" {
			c.options[key] = value
		} else {
			c.args = append(c.args, word)
		}
	}
	play, known := commands[list[0]]
	if !known {
		return nil, fmt.Errorf("there is no command %q", list[0])
	}
	if len(c.args) < play.args {
		return nil, fmt.Errorf("%s takes at least %d words, got %d", list[0], play.args, len(c.args))
	}
	answer, err := play.do(p, c)
	if own := (*stage.Error)(nil); errors.As(err, &own) {
		return refusal("refused", err), nil
	}
	if own := pathdict.Error(""); errors.As(err, &own) {
		return refusal("refused", err), nil
	}
	return answer, err
}

var commands = map[string]struct {
	args int
	do   func(*player, command) ([]string, error)
}{
	"history": {1, (*player).history}, "seal": {1, (*player).seal}, "floor": {0, (*player).floor}, "oldest": {0, (*player).oldest},
	"write": {3, (*player).write}, "delete": {2, (*player).delete}, "publish": {1, (*player).publish},
	"map": {3, (*player).openMap}, "fetch": {1, (*player).fetch}, "fill": {2, (*player).fill}, "commit": {1, (*player).commit},
	"abort": {1, (*player).abort}, "view": {1, (*player).view}, "scribble": {1, (*player).scribble},
	"read": {4, (*player).read}, "hold": {5, (*player).hold}, "show": {1, (*player).show}, "drop": {1, (*player).dropHeld},
	"query": {2, (*player).query}, "filter": {1, (*player).filter}, "refresh": {1, (*player).refresh},
	"since": {2, (*player).since}, "level": {1, (*player).level}, "layout": {4, (*player).layout},
	"prototypes": {0, (*player).prototypes}, "instances": {1, (*player).instances}, "prototype": {1, (*player).prototype},
	"list": {1, (*player).list}, "carried": {1, (*player).carried}, "attributes": {0, (*player).attributes},
	"clone": {2, (*player).clone}, "compute": {2, (*player).compute}, "relatives": {2, (*player).relatives},
}

// ---- Words ----

func number(word string) (uint64, error) { return strconv.ParseUint(word, 10, 64) }

func (p *player) token(name string) (pathdict.Token, error) { return p.dict.Token(name) }

func (p *player) text(token uint64) string {
	text, _ := p.dict.TokenString(pathdict.Token(token))
	return text
}

func (p *player) tokens(names string) (tokens []pathdict.Token, err error) {
	for _, name := range strings.Split(names, ",") {
		token, err := p.token(name)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// on calls do with the query of some prims, $name or paths, which ends with the call if it was made for it.
func (p *player) on(prims string, do func(stage.QueryID) error) error {
	if name, ok := strings.CutPrefix(prims, "$"); ok {
		return do(p.queries[name]) // 0 for one that is not there, which the stage refuses
	}
	q, err := p.queryOf(prims)
	if err != nil {
		return err
	}
	err = do(q)
	if _, failure := p.stage.ReleaseQuery(q); failure != nil {
		return failure
	}
	return err
}

func (p *player) queryOf(prims string) (stage.QueryID, error) {
	var paths []string
	if prims != "-" {
		paths = strings.Split(prims, ",")
	}
	list, err := p.dict.NewListFromStrings(paths)
	if err != nil {
		return 0, err
	}
	q, failure := p.stage.QueryPaths(list)
	if err := p.dict.ReleaseRef(list); err != nil {
		return 0, err
	}
	if failure != nil {
		return 0, failure
	}
	return q, nil
}

// at cuts NAME@ORDINAL.
func at(word string) (name string, ordinal uint64, err error) {
	name, text, ok := strings.Cut(word, "@")
	if !ok {
		return "", 0, fmt.Errorf("%q has no ordinal; write %s@3", word, word)
	}
	ordinal, err = number(text)
	return name, ordinal, err
}

// role is a semantic by its name.
func role(name string) (tensor.Semantic, error) {
	for s := tensor.SemanticNone; s <= tensor.SemanticFrame; s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("there is no role %q", name)
}

func mode(name string) (stage.Mode, error) {
	switch name {
	case "", "upsert":
		return stage.Upsert, nil
	case "insert":
		return stage.Insert, nil
	case "update":
		return stage.Update, nil
	case "require":
		return stage.Require, nil
	}
	return 0, fmt.Errorf("there is no mode %q", name)
}

func numbers[T uint32 | uint64](word string) (list []T, err error) {
	for _, text := range strings.Split(word, ",") {
		n, err := number(text)
		if err != nil {
			return nil, err
		}
		list = append(list, T(n))
	}
	return list, nil
}

// ended is the answer of an operation that was accepted: nothing, or how it failed.
func (p *player) ended(op uint64) []string {
	failure := p.stage.OpError(op)
	if failure == nil {
		return nil
	}
	_ = p.stage.ForgetOp(op)
	return refusal("failed", failure)
}

// ---- Floors ----

func (p *player) history(c command) ([]string, error) {
	n, err := number(c.args[0])
	if err != nil {
		return nil, err
	}
	if failure := p.stage.KeepHistory(n); failure != nil {
		return nil, failure
	}
	return nil, nil
}

func (p *player) seal(c command) ([]string, error) {
	ordinal, err := number(c.args[0])
	if err != nil {
		return nil, err
	}
	scope, names := stage.All, ""
	for word, meant := range map[string]stage.Scope{"only": stage.Include, "but": stage.Exclude} {
		if list, ok := c.options[word]; ok {
			scope, names = meant, list
		}
	}
	var tokens []pathdict.Token
	if names != "" {
		if tokens, err = p.tokens(names); err != nil {
			return nil, err
		}
	}
	op, failure := p.stage.AdvanceFloor(ordinal, scope, tokens)
	if failure != nil {
		return nil, failure
	}
	return p.ended(op), nil
}

func (p *player) floor(c command) ([]string, error) {
	var name pathdict.Token
	if len(c.args) > 0 {
		var err error
		if name, err = p.token(c.args[0]); err != nil {
			return nil, err
		}
	}
	id, _, failure := p.stage.AttributeFloor(name)
	if failure != nil {
		return nil, failure
	}
	return p.ordinal(id)
}

func (p *player) oldest(command) ([]string, error) {
	id, _, failure := p.stage.OldestPreserved()
	if failure != nil {
		return nil, failure
	}
	return p.ordinal(id)
}

func (p *player) ordinal(id stage.OrdinalQueryID) ([]string, error) {
	ordinal, failure := p.stage.FetchOrdinal(id)
	if failure != nil {
		return nil, failure
	}
	if _, failure := p.stage.ReleaseOrdinalQuery(id); failure != nil {
		return nil, failure
	}
	return []string{strconv.FormatUint(ordinal, 10)}, nil
}

// ---- Writes ----

func (p *player) write(c command) ([]string, error) {
	name, ordinal, err := at(c.args[1])
	if err != nil {
		return nil, err
	}
	how, err := mode(c.options["mode"])
	if err != nil {
		return nil, err
	}
	writes, err := p.writes(append([]string{name}, c.args[2:]...), c.options)
	if err != nil {
		return nil, err
	}
	var op uint64
	err = p.on(c.args[0], func(q stage.QueryID) error {
		issued, failure := p.stage.Write(q, writes, ordinal, how)
		if failure != nil {
			return failure
		}
		op = issued
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p.ended(op), nil
}

// writes reads ATTRIBUTE TYPE VALUES, several of them with & in between. Options are for all.
func (p *player) writes(args []string, options map[string]string) (writes []stage.Write, err error) {
	for len(args) > 0 {
		part := args
		if end := slices.Index(args, "&"); end >= 0 {
			part, args = args[:end], args[end+1:]
		} else {
			args = nil
		}
		if len(part) < 2 {
			return nil, fmt.Errorf("a write is an attribute, a type and values, got %v", part)
		}
		w := stage.Write{}
		if w.Attribute, err = p.token(part[0]); err != nil {
			return nil, err
		}
		if w.Payload, err = p.payload(part[1], part[2:], options); err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	return writes, nil
}

func (p *player) payload(kind string, rows []string, options map[string]string) (w stage.Payload, err error) {
	t, err := parseType(kind)
	if err != nil {
		return w, err
	}
	w.Array = t.array
	arrays := [][]string{rows}
	if t.array && len(rows) > 0 && rows[0][0] == '[' {
		arrays = nil
		for _, row := range rows {
			arrays = append(arrays, strings.Fields(strings.Trim(row, "[]")))
		}
	}
	for _, array := range arrays {
		bytes, err := t.encode(p.dict, array)
		if err != nil {
			return w, err
		}
		w.Views = append(w.Views, tensor.View{
			Data: unsafe.Pointer(unsafe.SliceData(bytes)), Device: tensor.Device{Type: tensor.CPU}, DType: t.DType,
			Shape: []int64{int64(len(array))},
		})
	}
	if list, ok := options["rows"]; ok {
		if w.IndexMap, err = numbers[uint32](list); err != nil {
			return w, err
		}
		w.Count = uint32(len(w.IndexMap))
	}
	if bits, ok := options["mask"]; ok {
		w.Count = uint32(len(bits))
		mask := bitset.New(len(bits))
		for i := range bits {
			if bits[i] == '1' {
				mask.Add(i)
			}
		}
		w.Mask = mask
	}
	if count, ok := options["count"]; ok {
		n, err := number(count)
		if err != nil {
			return w, err
		}
		w.Count = uint32(n)
	}
	if name, ok := options["role"]; ok {
		if w.Semantic, err = role(name); err != nil {
			return w, err
		}
	}
	if name, ok := options["type"]; ok {
		w.Type, err = p.token(name)
	}
	return w, err
}

func (p *player) delete(c command) ([]string, error) {
	names, ordinal, err := at(c.args[1])
	if err != nil {
		return nil, err
	}
	var tokens []pathdict.Token
	if names != "*" {
		if tokens, err = p.tokens(names); err != nil {
			return nil, err
		}
	}
	var op uint64
	err = p.on(c.args[0], func(q stage.QueryID) error {
		issued, failure := p.stage.DeleteAttributes(q, tokens, ordinal)
		if failure != nil {
			return failure
		}
		op = issued
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p.ended(op), nil
}

// publish reads ORDINAL, then `- PRIMS NAMES` for each delete and `+ PRIMS ATTRIBUTE TYPE VALUES` for each write.
func (p *player) publish(c command) ([]string, error) {
	ordinal, err := number(c.args[0])
	if err != nil {
		return nil, err
	}
	var deletions []stage.Deletion
	var batches []stage.Batch
	var made []stage.QueryID
	defer func() {
		for _, q := range made {
			_, _ = p.stage.ReleaseQuery(q)
		}
	}()
	for args := c.args[1:]; len(args) > 0; {
		end := 1
		for end < len(args) && args[end] != "-" && args[end] != "+" {
			end++
		}
		part := args[:end]
		args = args[end:]
		if len(part) < 3 {
			return nil, fmt.Errorf("a part of a publication is - PRIMS NAMES or + PRIMS ATTRIBUTE TYPE VALUES, got %v", part)
		}
		q, err := p.queryOf(part[1])
		if err != nil {
			return nil, err
		}
		made = append(made, q)
		if part[0] == "-" {
			d := stage.Deletion{Query: q}
			if part[2] != "*" {
				if d.Attributes, err = p.tokens(part[2]); err != nil {
					return nil, err
				}
			}
			deletions = append(deletions, d)
			continue
		}
		writes, err := p.writes(part[2:], c.options)
		if err != nil {
			return nil, err
		}
		batches = append(batches, stage.Batch{Query: q, Writes: writes})
	}
	op, failure := p.stage.Publish(deletions, batches, ordinal)
	if failure != nil {
		return nil, failure
	}
	return p.ended(op), nil
}

// ---- Maps ----

func (p *player) openMap(c command) ([]string, error) {
	name, ordinal, err := at(c.args[2])
	if err != nil {
		return nil, err
	}
	desc := stage.MapDesc{}
	if desc.Attribute, err = p.token(name); err != nil {
		return nil, err
	}
	if desc.Mode, err = mode(c.options["mode"]); err != nil {
		return nil, err
	}
	if len(c.args) > 3 {
		t, err := parseType(c.args[3])
		if err != nil {
			return nil, err
		}
		desc.DType = t.DType
	}
	if name, ok := c.options["role"]; ok {
		if desc.Semantic, err = role(name); err != nil {
			return nil, err
		}
	}
	if sizes, ok := c.options["sizes"]; ok {
		desc.HasSizes = true
		if desc.ElementSizes, err = numbers[uint64](sizes); err != nil {
			return nil, err
		}
	}
	if rows, ok := c.options["group"]; ok {
		if desc.GroupRows, err = number(rows); err != nil {
			return nil, err
		}
	}
	switch initial := c.options["initial"]; initial {
	case "", "current":
	case "zero":
		desc.Initial = stage.Zero
	case "discard":
		desc.Initial = stage.Discard
	default:
		return nil, fmt.Errorf("there is no initial content %q", initial)
	}
	m := &session{array: desc.HasSizes, content: desc.Initial != stage.Discard}
	err = p.on(c.args[1], func(q stage.QueryID) error {
		id, _, failure := p.stage.Map(q, desc, ordinal)
		if failure != nil {
			return failure
		}
		m.id = id
		return nil
	})
	if err == nil {
		p.maps[c.args[0]] = m
	}
	return nil, err
}

func (p *player) session(name string) (*session, error) {
	if m := p.maps[name]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("there is no map %q", name)
}

// mapped is the group that a script calls map.number.
func (p *player) mapped(word string) (m *session, at int, err error) {
	name, text, _ := strings.Cut(word, ".")
	n, err := number(text)
	if err != nil {
		return nil, 0, fmt.Errorf("%q is no group of a map, such as m.0", word)
	}
	if m, err = p.session(name); err != nil {
		return nil, 0, err
	}
	if int(n) >= len(m.groups) {
		return nil, 0, fmt.Errorf("%s was not fetched", word)
	}
	return m, int(n), nil
}

func (p *player) fetch(c command) ([]string, error) {
	m, err := p.session(c.args[0])
	if err != nil {
		return nil, err
	}
	g, failure := p.stage.FetchMap(m.id)
	if failure != nil {
		return nil, failure
	}
	if g == nil {
		return []string{"no more"}, nil
	}
	m.groups = append(m.groups, g)
	lines := []string{fmt.Sprintf("%s.%d %s", c.args[0], len(m.groups)-1, typed{g.DType, m.array})}
	if !m.content {
		return append(lines, p.paths(&g.Group)...), nil
	}
	return append(lines, p.rows(&g.Group, "")...), nil
}

// fill writes rows of a fetched group, from its first on; - leaves one as it is.
func (p *player) fill(c command) ([]string, error) {
	m, at, err := p.mapped(c.args[0])
	if err != nil {
		return nil, err
	}
	g := m.groups[at]
	if g == nil {
		return nil, fmt.Errorf("%s was committed", c.args[0])
	}
	t := typed{g.DType, m.array}
	to := 0
	for k, row := range c.args[1:] {
		values, size := []string{row}, t.Size()
		if m.array {
			values = strings.Fields(strings.Trim(row, "[]"))
			span := p.spans(g)[k]
			to, size = int(span.Offset), int(span.Length)
		}
		if row != "-" {
			bytes, err := t.encode(p.dict, values)
			if err != nil {
				return nil, err
			}
			if len(bytes) != size {
				return nil, fmt.Errorf("%s is %d bytes, the row has %d", row, len(bytes), size)
			}
			copy(g.Data.Bytes()[to:], bytes)
		}
		to += size
	}
	return nil, nil
}

// commit ends a map, m, or commits one of its groups, m.0.
func (p *player) commit(c command) ([]string, error) {
	if !strings.Contains(c.args[0], ".") {
		m, err := p.session(c.args[0])
		if err != nil {
			return nil, err
		}
		op, failure := p.stage.Unmap(m.id, false)
		if failure != nil {
			return nil, failure
		}
		p.letGo(m)
		return p.ended(op), nil
	}
	m, at, err := p.mapped(c.args[0])
	if err != nil {
		return nil, err
	}
	g := m.groups[at]
	if g == nil {
		return nil, fmt.Errorf("%s was committed", c.args[0])
	}
	op, failure := p.stage.UnmapGroup(m.id, g.Key, false)
	if failure != nil {
		return nil, failure
	}
	answer := p.ended(op)
	if answer == nil {
		g.Release(p.dict)
		m.groups[at] = nil
	}
	return answer, nil
}

// letGo gives the groups of a session that has ended back.
func (p *player) letGo(m *session) {
	for i, g := range m.groups {
		if g != nil {
			g.Release(p.dict)
			m.groups[i] = nil
		}
	}
}

func (p *player) abort(c command) ([]string, error) {
	m, err := p.session(c.args[0])
	if err != nil {
		return nil, err
	}
	if failure := p.stage.Abort(m.id); failure != nil {
		return nil, failure
	}
	p.letGo(m)
	return nil, nil
}

// view keeps a view of a mapped buffer beyond its commit; scribble writes to all of them.
func (p *player) view(c command) ([]string, error) {
	m, at, err := p.mapped(c.args[0])
	if err != nil {
		return nil, err
	}
	m.views = append(m.views, m.groups[at].Data.Retain())
	return nil, nil
}

func (p *player) scribble(c command) ([]string, error) {
	m, err := p.session(c.args[0])
	if err != nil {
		return nil, err
	}
	for _, view := range m.views {
		for i := range view.Bytes() {
			view.Bytes()[i] = 0xff
		}
	}
	return nil, nil
}

// ---- Reads ----

func (p *player) read(c command) ([]string, error) {
	groups, lines, err := p.groups(c.args)
	p.release(groups)
	return lines, err
}

func (p *player) hold(c command) ([]string, error) {
	groups, lines, err := p.groups(c.args[1:])
	if err != nil {
		return nil, err
	}
	p.release(p.held[c.args[0]])
	p.held[c.args[0]] = groups
	return lines, nil
}

func (p *player) show(c command) (lines []string, err error) {
	groups, ok := p.held[c.args[0]]
	if !ok {
		return nil, fmt.Errorf("nothing is held as %q", c.args[0])
	}
	for _, g := range groups {
		lines = append(lines, p.group(g)...)
	}
	return lines, nil
}

func (p *player) dropHeld(c command) ([]string, error) {
	p.release(p.held[c.args[0]])
	delete(p.held, c.args[0])
	return nil, nil
}

// groups reads `latest END PRIMS NAMES` or `range START END PRIMS NAMES`.
func (p *player) groups(args []string) (groups []*stage.Group, lines []string, err error) {
	var r stage.Range
	if args[0] == "range" {
		if r.Start, err = number(args[1]); err != nil {
			return nil, nil, err
		}
		r.HasStart, args = true, args[1:]
	}
	if len(args) < 4 {
		return nil, nil, fmt.Errorf("a read is latest END PRIMS NAMES or range START END PRIMS NAMES")
	}
	if r.End, err = number(args[1]); err != nil {
		return nil, nil, err
	}
	names, err := p.tokens(args[3])
	if err != nil {
		return nil, nil, err
	}
	err = p.on(args[2], func(q stage.QueryID) error {
		read, _, failure := p.stage.Read(q, names, r)
		if failure != nil {
			return failure
		}
		if groups, failure = p.fetched(read); failure != nil {
			return failure
		}
		for _, g := range groups {
			lines = append(lines, p.group(g)...)
		}
		for i := uint64(0); ; i++ {
			missing, ok := p.stage.Missing(read, i)
			if !ok {
				break
			}
			lines = append(lines, fmt.Sprintf("nothing of %s: %s", p.text(uint64(missing.Attribute)), missing.Reason))
		}
		if _, failure := p.stage.ReleaseRead(read); failure != nil {
			return failure
		}
		return nil
	})
	return groups, lines, err
}

// fetched are all groups of a read.
func (p *player) fetched(read stage.ReadID) (groups []*stage.Group, err error) {
	for {
		g, err := p.stage.FetchRead(read)
		if g == nil || err != nil {
			return groups, err
		}
		groups = append(groups, g)
	}
}

// since reads PRIMS NAME@N,NAME@N; * stands for all prims, NAME@- for a consumer that knows nothing yet.
func (p *player) since(c command) (lines []string, err error) {
	var cursors []stage.Cursor
	for _, word := range strings.Split(c.args[1], ",") {
		cursor, name := stage.Cursor{}, strings.TrimSuffix(word, "@-")
		if cursor.Resync = name != word; !cursor.Resync {
			if name, cursor.Since, err = at(word); err != nil {
				return nil, err
			}
		}
		if cursor.Attribute, err = p.token(name); err != nil {
			return nil, err
		}
		cursors = append(cursors, cursor)
	}
	follow := func(q stage.QueryID) error {
		read, _, err := p.stage.ReadSince(q, cursors)
		if err != nil {
			return err
		}
		groups, err := p.fetched(read)
		for _, g := range groups {
			lines = append(lines, p.group(g)...)
		}
		p.release(groups)
		if err == nil {
			_, err = p.stage.ReleaseRead(read)
		}
		return err
	}
	if c.args[0] == "*" {
		err = follow(0)
	} else {
		err = p.on(c.args[0], follow)
	}
	if err != nil {
		return nil, err
	}
	for _, cursor := range cursors {
		line := fmt.Sprintf("%s until %d", p.text(uint64(cursor.Attribute)), cursor.Until)
		if cursor.Resync {
			line += " anew"
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// level is of what C and Python describe; Go's groups are the same at both.
func (p *player) level(c command) ([]string, error) {
	p.newer = c.args[0] == "0.3"
	if !p.newer && c.args[0] != "0.2" {
		return nil, fmt.Errorf("there is no interface level %q", c.args[0])
	}
	return nil, nil
}

// layout says how the tensors of a read are described: what docs/guides/levels.md says of each level.
func (p *player) layout(c command) (lines []string, err error) {
	groups, _, err := p.groups(c.args)
	for _, g := range groups {
		lines = append(lines, p.described(g))
	}
	p.release(groups)
	return lines, err
}

// ---- Queries ----

func (p *player) query(c command) ([]string, error) {
	q, err := p.queryOf(c.args[1])
	if err == nil {
		err = p.name(c.args[0], q)
	}
	return nil, err
}

// name gives a query a name, and ends the one that had it.
func (p *player) name(name string, q stage.QueryID) error {
	if old, ok := p.queries[name]; ok {
		if _, failure := p.stage.ReleaseQuery(old); failure != nil {
			return failure
		}
	}
	p.queries[name] = q
	return nil
}

var (
	matches   = map[string]query.Match{"all": query.All, "any": query.Any, "none": query.None}
	operators = map[string]query.FilterOp{
		"has": query.Has, "in": query.In, "contains": query.Contains, "prefix": query.Prefix,
		"<": query.LT, "<=": query.LE, ">": query.GT, ">=": query.GE,
	}
)

// filter reads NAME all|any|none ATTRIBUTE OPERATOR VALUES & ATTRIBUTE OPERATOR VALUES.
func (p *player) filter(c command) ([]string, error) {
	what := query.Condition{Match: query.All}
	args := c.args[1:]
	if len(args) > 0 {
		match, ok := matches[args[0]]
		if !ok {
			return nil, fmt.Errorf("a filter is all, any or none of conditions, got %q", args[0])
		}
		what.Match, args = match, args[1:]
	}
	for len(args) > 0 {
		part := args
		if end := slices.Index(args, "&"); end >= 0 {
			part, args = args[:end], args[end+1:]
		} else {
			args = nil
		}
		if len(part) < 2 {
			return nil, fmt.Errorf("a condition is an attribute, an operator and values, got %v", part)
		}
		op, ok := operators[part[1]]
		if !ok {
			return nil, fmt.Errorf("there is no operator %q", part[1])
		}
		name, err := p.token(part[0])
		if err != nil {
			return nil, err
		}
		values := []string{}
		for _, value := range part[2:] {
			values = append(values, strings.Trim(value, `"`))
		}
		what.Conditions = append(what.Conditions, query.Is(query.Predicate{Attribute: name, Op: op, Values: values}))
	}
	q, _, failure := p.stage.QueryFilter(what, nil)
	if failure != nil {
		return nil, failure
	}
	if err := p.name(c.args[0], q); err != nil {
		return nil, err
	}
	return p.listed(q)
}

func (p *player) refresh(c command) ([]string, error) {
	q := p.queries[strings.TrimPrefix(c.args[0], "$")]
	if _, failure := p.stage.RefreshQuery(q); failure != nil {
		return nil, failure
	}
	return p.listed(q)
}

func (p *player) list(c command) (lines []string, err error) {
	err = p.on(c.args[0], func(q stage.QueryID) (err error) {
		lines, err = p.listed(q)
		return err
	})
	return lines, err
}

// listed are the prims of a query that exist, in its order: those that have a path.
func (p *player) listed(q stage.QueryID) (lines []string, err error) {
	path, err := p.token("usd-path")
	if err != nil {
		return nil, err
	}
	read, _, failure := p.stage.Read(q, []pathdict.Token{path}, stage.Range{})
	if failure != nil {
		return nil, failure
	}
	for {
		g, failure := p.stage.FetchRead(read)
		if failure != nil {
			return nil, failure
		}
		if g == nil {
			break
		}
		lines = append(lines, p.paths(g)...)
		g.Release(p.dict)
	}
	if _, failure := p.stage.ReleaseRead(read); failure != nil {
		return nil, failure
	}
	return lines, nil
}

func (p *player) carried(c command) (lines []string, err error) {
	err = p.on(c.args[0], func(q stage.QueryID) error {
		tokens, _, failure := p.stage.QueryResult(q)
		if failure != nil {
			return failure
		}
		for _, token := range tokens {
			lines = append(lines, p.text(uint64(token)))
		}
		return nil
	})
	sort.Strings(lines)
	return lines, err
}

func (p *player) attributes(command) (lines []string, err error) {
	list, failure := p.stage.Attributes()
	if failure != nil {
		return nil, failure
	}
	for _, a := range list {
		line := fmt.Sprintf("%s %s", p.text(uint64(a.Name)), typed{a.Schema.DType, a.Schema.Array})
		if a.Schema.Semantic != 0 {
			line += " " + a.Schema.Semantic.String()
		}
		if a.Schema.Type.Token != 0 {
			line += " (" + a.Schema.Type.Name + ")"
		}
		lines = append(lines, fmt.Sprintf("%s prims %d floor %d", line, a.Prims, a.Floor))
	}
	sort.Strings(lines)
	return lines, nil
}

// ---- Scenes ----

func (p *player) clone(c command) ([]string, error) {
	targets, ordinal, err := at(c.args[1])
	if err != nil {
		return nil, err
	}
	op, failure := p.scene.Clone(c.args[0], strings.Split(targets, ","), ordinal)
	if failure != nil {
		return nil, failure
	}
	return p.ended(op), nil
}

func (p *player) compute(c command) ([]string, error) {
	from, err := number(c.args[0])
	if err != nil {
		return nil, err
	}
	to, err := number(c.args[1])
	if err != nil {
		return nil, err
	}
	op, failure := p.scene.Compute(scene.CPUIncremental, from, to)
	if failure != nil {
		return nil, failure
	}
	return p.ended(op), nil
}

var relations = map[string]scene.Relation{"parent": scene.Parent, "children": scene.Children, "siblings": scene.Siblings}

func (p *player) relatives(c command) (lines []string, err error) {
	relation, ok := relations[c.args[0]]
	if !ok {
		return nil, fmt.Errorf("there are no relatives %q", c.args[0])
	}
	asked := strings.Split(c.args[1], ",")
	list, err := p.dict.NewListFromStrings(asked)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.dict.ReleaseRef(list)) }()
	id, _, failure := p.scene.AskRelatives(list, 1, relation)
	if failure != nil {
		return nil, failure
	}
	found, failure := p.scene.FetchRelatives(id)
	if failure != nil {
		return nil, failure
	}
	from := 0
	for i, path := range asked {
		line := path + ":"
		for _, relative := range found.Paths[from:found.Ends[i]] {
			text, err := p.dict.PathString(relative)
			if err != nil {
				return nil, err
			}
			line += " " + text
		}
		if !found.Known[i] {
			line += " is no prim"
		}
		from = found.Ends[i]
		lines = append(lines, line)
	}
	if _, failure := p.scene.ReleaseRelatives(id); failure != nil {
		return nil, failure
	}
	return lines, nil
}

func (p *player) prototypes(command) ([]string, error) { return p.sorted(p.scene.Prototypes()) }

func (p *player) instances(c command) ([]string, error) {
	prototype, err := p.dict.Path(c.args[0])
	if err != nil {
		return nil, err
	}
	return p.sorted(p.scene.Instances(prototype))
}

func (p *player) prototype(c command) ([]string, error) {
	instance, err := p.dict.Path(c.args[0])
	if err != nil {
		return nil, err
	}
	found, err := p.scene.PrototypeOf(instance)
	if err != nil {
		return nil, err
	}
	text, err := p.dict.PathString(found)
	return []string{text}, err
}

// sorted are the paths of a list that was made for the player.
func (p *player) sorted(handle pathdict.ListHandle, err error) (lines []string, _ error) {
	if err != nil {
		return nil, err
	}
	list, err := p.dict.List(handle)
	if err != nil {
		return nil, err
	}
	for i := range list.Len() {
		text, err := p.dict.PathString(list.At(i))
		if err != nil {
			return nil, err
		}
		lines = append(lines, text)
	}
	sort.Strings(lines)
	return lines, p.dict.ReleaseRef(handle)
}
