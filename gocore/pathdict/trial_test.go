package pathdict

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Names that only refused calls have used cost nothing once those have ended.
func TestWithdrawnNamesCostNothing(t *testing.T) {
	d := New(0)
	defer d.Close()
	before := Stats{}
	for i := range 100_000 {
		token, trial, err := d.Try(fmt.Sprint(i, strings.Repeat("x", i%4000)))
		require.NoError(t, err)
		require.True(t, trial)
		d.Withdraw(token)
		if i == 10 {
			before = d.Stats()
		}
	}
	assert.Equal(t, before, d.Stats())
	assert.Zero(t, d.Stats().Tokens)
}

// A trial ends when everybody's has; interned by anybody, or kept, the name stays.
func TestNamesOnTrial(t *testing.T) {
	d := New(100)
	defer d.Close()
	a, trial, err := d.Try("a")
	require.NoError(t, err)
	require.True(t, trial)
	again, trial, _ := d.Try("a")
	assert.True(t, trial)
	assert.Equal(t, a, again)
	text, known := d.TokenString(a)
	assert.True(t, known)
	assert.Equal(t, "a", text)
	d.Withdraw(a)
	_, known = d.TokenString(a)
	assert.True(t, known, "the other call is at work")
	d.Withdraw(a)
	_, known = d.TokenString(a)
	assert.False(t, known)
	_, known = d.LookupToken("a")
	assert.False(t, known)

	for name, keep := range map[string]func(Token){
		"kept":      d.Keep,
		"interned":  func(Token) { _, _ = d.Token("interned") },
		"component": func(Token) { _, _ = d.Path("/x/component/y") },
	} {
		token, _, err := d.Try(name)
		require.NoError(t, err)
		keep(token)
		d.Withdraw(token)
		found, known := d.LookupToken(name)
		assert.True(t, known, name)
		assert.Equal(t, token, found)
		_, trial, _ := d.Try(name)
		assert.False(t, trial)
	}
	_, _, err = d.Try("")
	assert.ErrorContains(t, err, "must be non-empty")
}

// Random trials, of which some are kept, against a plain set: what stays is found, what went is not, and texts are whole.
func TestTrialsAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		d := New(0)
		kept, open := map[string]Token{}, map[Token]string{}
		for range 3000 {
			name := strings.Repeat("n", random.IntN(40)) + fmt.Sprint(random.IntN(500))
			switch random.IntN(4) {
			case 0, 1:
				token, trial, err := d.Try(name)
				require.NoError(t, err)
				if at, known := kept[name]; known {
					require.Equal(t, at, token)
				}
				require.Equal(t, kept[name] == 0, trial)
				if trial && open[token] == "" {
					open[token] = name
				} else if trial {
					d.Withdraw(token)
				}
			case 2:
				for token, name := range open {
					text, _ := d.TokenString(token)
					require.Equal(t, name, text)
					d.Withdraw(token)
					delete(open, token)
					break
				}
			case 3:
				for token, name := range open {
					d.Keep(token)
					kept[name] = token
					delete(open, token)
					break
				}
			}
		}
		require.Equal(t, len(kept)+len(open), d.Stats().Tokens)
		for name, token := range kept {
			found, known := d.LookupToken(name)
			require.True(t, known)
			require.Equal(t, token, found)
			text, _ := d.TokenString(token)
			require.Equal(t, name, text)
		}
		d.Close()
	}
}

// Threads try, withdraw and intern the same few names.
func TestTrialsOnManyThreads(t *testing.T) {
	d := New(0)
	defer d.Close()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 3))
			for range 5000 {
				name := fmt.Sprint("name", random.IntN(50))
				if random.IntN(200) == 0 {
					_, err := d.Path("/" + name)
					assert.NoError(t, err)
					continue
				}
				token, trial, err := d.Try(name)
				assert.NoError(t, err)
				text, known := d.TokenString(token)
				assert.True(t, known)
				assert.Equal(t, name, text)
				if trial {
					d.Withdraw(token)
				}
			}
		})
	}
	all.Wait()
	for i := range 50 {
		if token, known := d.LookupToken(fmt.Sprint("name", i)); known {
			text, _ := d.TokenString(token)
			assert.Equal(t, fmt.Sprint("name", i), text)
		}
	}
}

func TestLengthsHaveALimit(t *testing.T) {
	d := New(0)
	defer d.Close()
	_, err := d.Token(strings.Repeat("x", MaxToken+1))
	assert.ErrorContains(t, err, "must have at most 16777215 bytes")
	_, err = d.Token(strings.Repeat("x", MaxToken))
	assert.NoError(t, err)
	_, err = d.Path("/" + strings.Repeat("x", MaxPath))
	assert.ErrorContains(t, err, "must have at most 1048576 bytes")
	_, err = d.Path("/" + strings.Repeat("x", MaxPath-1))
	assert.NoError(t, err)
}
