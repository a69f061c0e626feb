package pathdict

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPathRoundTrip(t *testing.T) {
	d := open(t)
	for _, s := range []string{"/", "/A", "/World/Cube", "/World", "/World/Cube.radius", "/A.rel", "/a b/ü/日本", "/...",
		"/.hidden/..x", "/A/" + strings.Repeat("long", 200_000)} {
		p := mustPath(t, d, s)
		assert.NotZero(t, p)
		assert.Equal(t, p, mustPath(t, d, s))
		text, err := d.PathString(p)
		require.NoError(t, err)
		assert.Equal(t, s, text)
	}
}

func TestRoot(t *testing.T) {
	d := open(t)
	root := mustPath(t, d, "/")
	text, err := d.PathString(root)
	require.NoError(t, err)
	assert.Equal(t, "/", text)
	tokens, err := d.PathTokens(root, nil)
	assert.NoError(t, err)
	assert.Empty(t, tokens)
	depth, ok := d.Depth(root)
	assert.True(t, ok)
	assert.Zero(t, depth)
	_, ok = d.Parent(root)
	assert.False(t, ok)
	index, ok := d.Index(root)
	assert.True(t, ok)
	assert.Zero(t, index)
	out := make([]Path, 4)
	require.NoError(t, d.Paths([]string{"/A", "/", "/A/B", "/"}, out))
	assert.Equal(t, []Path{d.PathAt(1), root, d.PathAt(2), root}, out)
}

func TestUnknownPaths(t *testing.T) {
	d := open(t)
	last := mustPath(t, d, "/last")
	for _, p := range []Path{0, last + 1, 0xDEADBEEF, 1<<64 - 1} {
		_, err := d.PathString(p)
		assert.EqualError(t, err, "Prim path handle was not found in this dictionary")
		tokens, err := d.PathTokens(p, []Token{5})
		assert.EqualError(t, err, "Prim path handle was not found in this dictionary")
		assert.Equal(t, []Token{5}, tokens)
		_, ok := d.Parent(p)
		assert.False(t, ok)
		_, ok = d.Depth(p)
		assert.False(t, ok)
		_, ok = d.Index(p)
		assert.False(t, ok)
		_, err = d.NewList([]Path{last, p})
		assert.ErrorContains(t, err, fmt.Sprintf("Prim path handle was not found in this dictionary (entry 1, handle %d)", p))
	}
	assert.Zero(t, d.PathAt(2))
	assert.Zero(t, d.PathAt(1<<32-1))
}

func TestAncestorsAreInternedFirst(t *testing.T) {
	d := open(t)
	leaf := mustPath(t, d, "/World/Robot/arm.angle")
	assert.Equal(t, 4, d.PathCount())
	want := []string{"/World/Robot", "/World"}
	for p := leaf; ; {
		parent, ok := d.Parent(p)
		if len(want) == 0 {
			require.True(t, ok)
			assert.Equal(t, mustPath(t, d, "/"), parent)
			break
		}
		require.True(t, ok)
		assert.Less(t, parent, p)
		assert.Equal(t, parent, mustPath(t, d, want[0]))
		p, want = parent, want[1:]
	}
	tokens, err := d.PathTokens(leaf, []Token{99})
	require.NoError(t, err)
	world, robot, arm := mustToken(t, d, "World"), mustToken(t, d, "Robot"), mustToken(t, d, "arm.angle")
	assert.Equal(t, []Token{99, world, robot, arm}, tokens)
	assert.Equal(t, 4, d.PathCount())
}

func TestAllRoutesMakeTheSamePath(t *testing.T) {
	d := open(t)
	world, cube, ball := mustToken(t, d, "World"), mustToken(t, d, "Cube"), mustToken(t, d, "Ball")
	out := make([]Path, 4)
	require.NoError(t, d.PathsFromTokens([]Token{world, cube, world, ball}, []int{2, 0, 2, 0}, out))
	root := mustPath(t, d, "/")
	assert.Equal(t, []Path{mustPath(t, d, "/World/Cube"), root, mustPath(t, d, "/World/Ball"), root}, out)
	batch := make([]Path, 2)
	require.NoError(t, d.Paths([]string{"/World/Ball", "/World/Cube"}, batch))
	assert.Equal(t, []Path{out[2], out[0]}, batch)
}

var refusedPaths = []struct{ path, text string }{
	{"", "Path string must be non-empty (entry 1)"},
	{"pre\x00post", `Path string contains embedded NUL (entry 1, "pre\x00post")`},
	{"\x00lead", "Path string contains embedded NUL"},
	{"trail\x00", "Path string contains embedded NUL"},
	{"/A/\x00", "Path string contains embedded NUL"},
	{"/A/b\xff", `Path string must be valid UTF-8 (entry 1, "/A/b\xff")`},
	{"World", `Path string must start with "/" (entry 1, "World")`},
	{"./A", `Path string must start with "/"`},
	{"//", "Path string must not have an empty component"},
	{"//A", "Path string must not have an empty component"},
	{"/A//B", `Path string must not have an empty component (entry 1, "/A//B")`},
	{"/A/", `Path string must not end with "/" (entry 1, "/A/")`},
	{"/.", `Path string must not have "." or ".." components (entry 1, "/.")`},
	{"/..", `Path string must not have "." or ".." components`},
	{"/A/./B", `Path string must not have "." or ".." components`},
	{"/A/../B", `Path string must not have "." or ".." components`},
	{"/A/..", `Path string must not have "." or ".." components`},
	{strings.Repeat("/a", MaxDepth+1), `/a/a"..., 131074 bytes): it has 65537`},
}

func TestRefusedPaths(t *testing.T) {
	for _, c := range refusedPaths {
		d := open(t)
		out := []Path{7, 8, 9}
		err := d.Paths([]string{"/A/B", c.path, ""}, out)
		assert.IsType(t, Error(""), err)
		assert.ErrorContains(t, err, c.text)
		assert.Equal(t, []Path{7, 8, 9}, out)
		h, err := d.NewListFromStrings([]string{"/A/B", c.path})
		assert.ErrorContains(t, err, c.text)
		assert.Zero(t, h)
		assert.Zero(t, d.Stats().Handles)
		assert.Equal(t, 1, d.PathCount(), "nothing is interned")
		_, err = d.Path(c.path)
		assert.Error(t, err)
	}
}

func TestRefusedComponents(t *testing.T) {
	d := open(t)
	good := mustToken(t, d, "good")
	for _, c := range []struct {
		tokens []Token
		counts []int
		text   string
	}{
		{[]Token{good, 0}, []int{1, 1}, "Token handle was not found in this dictionary (entry 1, component 0, handle 0)"},
		{[]Token{good, 0xDEADBEEF}, []int{0, 2}, "Token handle was not found in this dictionary (entry 1, component 1, handle 3735928559)"},
		{[]Token{good, mustToken(t, d, "a/b")}, []int{2}, `(entry 0, component 1, "a/b")`},
		{[]Token{mustToken(t, d, "/")}, []int{1}, `Path component must be without "/"`},
		{[]Token{mustToken(t, d, ".")}, []int{1}, `not be "." or ".."`},
		{[]Token{mustToken(t, d, "..")}, []int{1}, `not be "." or ".."`},
		{[]Token{good}, []int{0, -1}, "from 0 to 1, the tokens that are left (entry 1, count -1)"},
		{[]Token{good}, []int{1, 1}, "from 0 to 0, the tokens that are left (entry 1, count 1)"},
		{[]Token{good, good}, []int{1, 0}, "must add up to the number of tokens, 2: they add up to 1"},
		{slices.Repeat([]Token{good}, MaxDepth+1), []int{MaxDepth + 1}, "at most 65536 components (entry 0): it has 65537"},
	} {
		out := []Path{7, 8}
		err := d.PathsFromTokens(c.tokens, c.counts, out)
		assert.ErrorContains(t, err, c.text)
		assert.Equal(t, []Path{7, 8}, out)
	}
	assert.Equal(t, 1, d.PathCount(), "nothing is interned")
}

func TestDeepestPath(t *testing.T) {
	d := open(t)
	deepest := strings.Repeat("/a", MaxDepth)
	out := make([]Path, 3)
	require.NoError(t, d.Paths([]string{deepest, "/a", deepest[:len(deepest)-1] + "b"}, out))
	text, err := d.PathString(out[0])
	require.NoError(t, err)
	assert.True(t, text == deepest)
	tokens, err := d.PathTokens(out[0], nil)
	require.NoError(t, err)
	assert.Len(t, tokens, MaxDepth)
	again := make([]Path, 1)
	require.NoError(t, d.PathsFromTokens(tokens, []int{MaxDepth}, again))
	assert.Equal(t, out[0], again[0])
	assert.Equal(t, MaxDepth+2, d.PathCount())
	depth, _ := d.Depth(out[2])
	assert.Equal(t, MaxDepth, depth)
}

// A family moves from a chain to the table when it grows; before, at and after that its members are found, and no others.
func TestFamiliesOfEverySize(t *testing.T) {
	d := open(t)
	for size := range 3 * smallFamily {
		parent := fmt.Sprintf("/parent_%d", size)
		for child := range size {
			p := mustPath(t, d, fmt.Sprintf("%s/child_%d", parent, child))
			for earlier := range child {
				require.NotEqual(t, p, mustPath(t, d, fmt.Sprintf("%s/child_%d", parent, earlier)))
			}
			require.Equal(t, p, mustPath(t, d, fmt.Sprintf("%s/child_%d", parent, child)))
		}
		index, _ := d.Index(mustPath(t, d, parent))
		_, found := d.findChild(index, 1<<30)
		require.False(t, found)
	}
	total := 1 + 3*smallFamily
	for size := range 3 * smallFamily {
		total += size
	}
	assert.Equal(t, total, d.PathCount())
}

// valid is the grammar once more, written as the specification says it.
func valid(s string) bool {
	if s == "/" {
		return true
	}
	components := strings.Split(s, "/")
	if !strings.HasPrefix(s, "/") || strings.ContainsRune(s, 0) || !utf8.ValidString(s) || len(components)-1 > MaxDepth {
		return false
	}
	return !slices.ContainsFunc(components[1:], func(c string) bool { return c == "" || c == "." || c == ".." })
}

// randomText makes strings that are paths about half of the time.
func randomText(random *rand.Rand) string {
	components := []string{"a", "b", "abc", "Robot", "link_1", "link_2", "x.y", "é", "..a", "a.", "..."}
	faults := []string{"", ".", "..", "\x00", "\xff", "\xe9", "/", "a\x00b"}
	var s strings.Builder
	if random.Intn(20) > 0 {
		s.WriteByte('/')
	}
	for i := range random.Intn(6) {
		if i > 0 {
			s.WriteByte('/')
		}
		if random.Intn(12) == 0 {
			s.WriteString(faults[random.Intn(len(faults))])
		} else {
			s.WriteString(components[random.Intn(len(components))])
		}
	}
	return s.String()
}

// Random batches, valid and not, against a plain map from text to handle.
func TestPathsAgreeWithAMap(t *testing.T) {
	d := open(t)
	random := rand.New(rand.NewSource(2))
	model, texts := map[string]Path{}, map[Path]string{}
	learn := func(s string, p Path) {
		known, ok := model[s]
		if ok {
			require.Equal(t, known, p, "%q", s)
			return
		}
		_, taken := texts[p]
		require.False(t, taken, "%q", s)
		model[s], texts[p] = p, s
	}
	learn("/", d.PathAt(0))
	for range 3000 {
		batch := make([]string, random.Intn(8))
		for i := range batch {
			batch[i] = randomText(random)
		}
		out := slices.Repeat([]Path{77}, len(batch))
		err := d.Paths(batch, out)
		if fault := slices.IndexFunc(batch, func(s string) bool { return !valid(s) }); fault >= 0 {
			require.ErrorContains(t, err, fmt.Sprintf("(entry %d", fault))
			require.Equal(t, slices.Repeat([]Path{77}, len(batch)), out)
			continue
		}
		require.NoError(t, err)
		for i, s := range batch {
			for p, at := out[i], s; ; {
				learn(at, p)
				parent, ok := d.Parent(p)
				if !ok {
					require.Equal(t, "/", at)
					break
				}
				p, at = parent, at[:max(1, strings.LastIndexByte(at, '/'))]
				if len(at) == 0 {
					at = "/"
				}
			}
		}
	}
	require.Greater(t, len(model), 500)
	assert.Equal(t, len(model), d.PathCount())
	for s, p := range model {
		text, err := d.PathString(p)
		require.NoError(t, err)
		require.Equal(t, s, text)
		index, ok := d.Index(p)
		require.True(t, ok)
		require.Equal(t, p, d.PathAt(index))
		tokens, err := d.PathTokens(p, nil)
		require.NoError(t, err)
		again := make([]Path, 1)
		require.NoError(t, d.PathsFromTokens(tokens, []int{len(tokens)}, again))
		require.Equal(t, p, again[0])
	}
	assert.Equal(t, len(model), d.PathCount())
}

// The check of a batch skips what an entry shares with the one before; it must come to the same verdict as a check without.
func FuzzCheckPaths(f *testing.F) {
	for _, c := range refusedPaths[:len(refusedPaths)-1] {
		f.Add("/A/B", c.path)
		f.Add(c.path, "/A/B/C")
	}
	f.Add("/A/B", "/A/B/")
	f.Add("/A/.x", "/A/.")
	f.Add("/é", "/\xc3")
	f.Fuzz(func(t *testing.T, before, s string) {
		assert.Equal(t, valid(s), wellFormed(s, 0))
		assert.Equal(t, valid(before) && valid(s), checkPaths([]string{before, s}) == nil)
	})
}

func TestCheckOfABatchIsTheCheckOfEachEntry(t *testing.T) {
	random := rand.New(rand.NewSource(3))
	for range 20_000 {
		before, s := randomText(random), randomText(random)
		if random.Intn(2) == 0 { // make them share a beginning
			s = before[:random.Intn(len(before)+1)] + s
		}
		require.Equal(t, valid(s), wellFormed(s, 0), "%q", s)
		require.Equal(t, valid(before) && valid(s), checkPaths([]string{before, s}) == nil, "%q %q", before, s)
	}
}

func TestSharedPrefix(t *testing.T) {
	random := rand.New(rand.NewSource(4))
	for range 10_000 {
		a := strings.Repeat("abcdefghij", 4)[:random.Intn(40)]
		b := []byte(strings.Repeat("abcdefghij", 4)[:random.Intn(40)])
		if len(b) > 0 {
			b[random.Intn(len(b))] ^= byte(random.Intn(2))
		}
		want := 0
		for want < min(len(a), len(b)) && a[want] == b[want] {
			want++
		}
		require.Equal(t, want, sharedPrefix(a, string(b)))
	}
}

func TestTokenCountsMustFitTheTokens(t *testing.T) {
	d := open(t)
	tokens, out := []Token{mustToken(t, d, "A"), mustToken(t, d, "B")}, make([]Path, 2)
	assert.EqualError(t, d.PathsFromTokens(tokens, []int{1, 2}, out), "Token count must be from 0 to 1, the tokens that are left (entry 1, count 2)")
	assert.EqualError(t, d.PathsFromTokens(tokens, []int{-1, 2}, out), "Token count must be from 0 to 2, the tokens that are left (entry 0, count -1)")
	assert.EqualError(t, d.PathsFromTokens(tokens, []int{1, 0}, out), "Token counts must add up to the number of tokens, 2: they add up to 1")
}
