package pathdict

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTokenRoundTrip(t *testing.T) {
	d := open(t)
	for _, s := range []string{"radius", "omni:fabric:worldMatrix", "a", "/", "..", "with space", "größe", "日本",
		strings.Repeat("x", 100_000)} {
		token := mustToken(t, d, s)
		assert.NotZero(t, token)
		assert.Equal(t, token, mustToken(t, d, s))
		text, ok := d.TokenString(token)
		assert.True(t, ok)
		assert.Equal(t, s, text)
	}
}

func TestTokenZeroIsTheEmptyString(t *testing.T) {
	text, ok := open(t).TokenString(0)
	assert.True(t, ok)
	assert.Empty(t, text)
}

func TestUnknownTokens(t *testing.T) {
	d := open(t)
	last := mustToken(t, d, "last")
	for _, token := range []Token{last + 1, 0xDEADBEEF, 1<<64 - 1} {
		_, ok := d.TokenString(token)
		assert.False(t, ok, "%d", token)
	}
}

func TestRefusedTokens(t *testing.T) {
	for _, c := range []struct{ token, text string }{
		{"", "Token string must be non-empty (entry 1)"},
		{"pre\x00post", `Token string contains embedded NUL (entry 1, "pre\x00post")`},
		{"\x00lead", `Token string contains embedded NUL (entry 1, "\x00lead")`},
		{"trail\x00", `Token string contains embedded NUL (entry 1, "trail\x00")`},
		{"\x00\xff", "Token string contains embedded NUL"},
		{"a\xff", `Token string must be valid UTF-8 (entry 1, "a\xff")`},
		{"a\xed\xa0\x80", "Token string must be valid UTF-8"}, // a surrogate
		{strings.Repeat("é", 100) + "\x00", `é"..., 201 bytes): remove`},
	} {
		d := open(t)
		out := []Token{7, 8, 9}
		err := d.Tokens([]string{"good", c.token, ""}, out)
		assert.IsType(t, Error(""), err)
		assert.ErrorContains(t, err, c.text)
		assert.Equal(t, []Token{7, 8, 9}, out)
		assert.Zero(t, d.Stats().Tokens, "nothing is interned")
		_, err = d.Token(c.token)
		assert.Error(t, err)
	}
}

// Views are handed to C: they are NUL terminated, stay where they are and keep their bytes however much is interned later.
func TestTokenTextNeverMovesAndIsTerminated(t *testing.T) {
	d := open(t)
	type view struct{ text, want string }
	var views []view
	for i := range 5000 {
		want := fmt.Sprintf("token_%d_%s", i, strings.Repeat("y", i%1500))
		text, _ := d.TokenString(mustToken(t, d, want))
		views = append(views, view{text, want})
	}
	huge := strings.Repeat("z", 3*chunkSize)
	text, _ := d.TokenString(mustToken(t, d, huge))
	views = append(views, view{text, huge})
	require.Greater(t, len(d.text.blocks), 4)
	for _, v := range views {
		require.Equal(t, v.want, v.text)
		again, _ := d.TokenString(mustToken(t, d, v.want))
		require.Same(t, unsafe.StringData(v.text), unsafe.StringData(again))
		end := unsafe.Add(unsafe.Pointer(unsafe.StringData(v.text)), len(v.text))
		require.Zero(t, *(*byte)(end))
	}
}

func TestTokensAgreeWithAMap(t *testing.T) {
	d := open(t)
	random := rand.New(rand.NewSource(1))
	model, names := map[string]Token{}, map[Token]string{}
	for range 200 {
		batch := make([]string, random.Intn(700))
		for i := range batch {
			batch[i] = fmt.Sprintf("%c%d", 'a'+random.Intn(3), random.Intn(5000))
		}
		out := make([]Token, len(batch))
		require.NoError(t, d.Tokens(batch, out))
		for i, s := range batch {
			if known, ok := model[s]; ok {
				require.Equal(t, known, out[i])
				continue
			}
			_, taken := names[out[i]]
			require.False(t, taken, "%q", s)
			model[s], names[out[i]] = out[i], s
		}
	}
	for token, s := range names {
		text, ok := d.TokenString(token)
		require.True(t, ok)
		require.Equal(t, s, text)
	}
	assert.Equal(t, len(model), d.Stats().Tokens)
}

// Strings that collide in hash, tile and all must still be told apart.
func TestCollidingTokensAreToldApart(t *testing.T) {
	d := open(t)
	const n = 300
	for i := range n {
		_, err := d.addToken(42, fmt.Sprint("collide", i))
		require.NoError(t, err)
	}
	for i := range n {
		index, ok := d.findToken(42, fmt.Sprint("collide", i))
		require.True(t, ok)
		require.EqualValues(t, i, index)
	}
	_, ok := d.findToken(42, "absent")
	assert.False(t, ok)
	_, ok = d.findToken(43, "collide1")
	assert.False(t, ok)
}
