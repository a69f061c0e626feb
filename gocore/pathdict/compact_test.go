package pathdict

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func nothing(*Named) error { return nil }

func compact(t *testing.T, d *Dictionary) Gone {
	t.Helper()
	gone, err := d.Compact(nothing)
	require.NoError(t, err)
	return gone
}

func listOf(t require.TestingT, d *Dictionary, paths ...string) ListHandle {
	h, err := d.NewListFromStrings(paths)
	require.NoError(t, err)
	return h
}

// What is named stays as it is: by a list, by a path below it, by itself, by who is asked.
func TestCompactLeavesWhatIsNamed(t *testing.T) {
	d := open(t)
	kept := listOf(t, d, "/World/kept/below")
	alone := mustPath(t, d, "/World/alone")
	dropped := listOf(t, d, "/World/dropped", "/World/told/of", "/World/told")
	list, err := d.List(dropped)
	require.NoError(t, err)
	told, gonePath, goneToo := list.At(2), list.At(0), list.At(1)
	list = nil
	require.NoError(t, d.ReleaseRef(dropped))

	gone, err := d.Compact(func(n *Named) error {
		n.Handle(told)
		n.Handle(1 << 60) // whatever the number
		n.Token(1 << 60)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, Gone{Paths: 2, Tokens: 2}, gone, "/World/dropped and /World/told/of, and their names")

	for _, p := range []Path{gonePath, goneToo} {
		_, err = d.PathString(p)
		require.ErrorIs(t, err, ErrUnknownPath)
		_, known := d.Index(p)
		assert.False(t, known)
		_, err = d.NewList([]Path{p})
		require.ErrorContains(t, err, string(ErrUnknownPath))
	}
	assert.Equal(t, "/World/alone", mustString(t, d, alone))
	assert.Equal(t, "/World/told", mustString(t, d, told))
	assert.Equal(t, alone, mustPath(t, d, "/World/alone"))
	list, err = d.List(kept)
	require.NoError(t, err)
	assert.Equal(t, "/World/kept/below", mustString(t, d, list.At(0)))

	again := mustPath(t, d, "/World/dropped")
	assert.NotEqual(t, gonePath, again, "a handle is never used again")
	assert.Equal(t, "/World/dropped", mustString(t, d, again))
	_, err = d.PathString(gonePath)
	assert.ErrorIs(t, err, ErrUnknownPath)
	runtime.KeepAlive(list)
}

func mustString(t require.TestingT, d *Dictionary, p Path) string {
	text, err := d.PathString(p)
	require.NoError(t, err)
	return text
}

// Tokens that were interned, kept or looked at stay, whatever becomes of the paths that have them as a component.
func TestCompactLeavesTokens(t *testing.T) {
	d := open(t)
	interned, err := d.Token("interned")
	require.NoError(t, err)
	require.NoError(t, d.ReleaseRef(listOf(t, d, "/interned/tried/looked/plain/trial")))
	_, trial, err := d.Try("tried")
	require.NoError(t, err)
	assert.False(t, trial)
	looked, known := d.LookupToken("looked")
	require.True(t, known && d.Stay(looked))
	plain, _ := d.LookupToken("plain")
	open, trial, err := d.Try("on trial")
	require.NoError(t, err)
	require.True(t, trial)

	assert.Equal(t, Gone{Paths: 5, Tokens: 2}, compact(t, d))
	for token, text := range map[Token]string{interned: "interned", looked: "looked", open: "on trial"} {
		found, known := d.TokenString(token)
		assert.True(t, known)
		assert.Equal(t, text, found)
	}
	_, known = d.TokenString(plain)
	assert.False(t, known)
	assert.False(t, d.Stay(plain))
	d.Withdraw(open)
	fresh, err := d.Token("fresh")
	require.NoError(t, err)
	assert.NotEqual(t, plain, fresh)
	_, known = d.TokenString(plain)
	assert.False(t, known)
}

// Whoever can't say what it names loses nothing.
func TestCompactThatFails(t *testing.T) {
	d := open(t)
	require.NoError(t, d.ReleaseRef(listOf(t, d, "/a/b")))
	before := d.Stats()
	_, err := d.Compact(func(*Named) error { return errClosed })
	require.ErrorIs(t, err, errClosed)
	assert.Equal(t, [2]int{before.Paths, before.Tokens}, [2]int{d.Stats().Paths, d.Stats().Tokens})
	assert.Equal(t, Gone{Paths: 2, Tokens: 2}, compact(t, d))
	d.Close()
	_, err = d.Compact(nothing)
	assert.ErrorIs(t, err, errClosed)
}

// Rounds of new paths need no more memory than the first ones: small and large families, deep and flat, with some that stay.
func TestCompactGrowsNoMore(t *testing.T) {
	d, random := open(t), rand.New(rand.NewPCG(7, 7))
	stays := listOf(t, d, "/World", "/World/Env/here", "/Other/a/b/c/d")
	round := func(k int) {
		var paths []string
		for i := range 3000 {
			switch k % 3 {
			case 0:
				paths = append(paths, fmt.Sprintf("/World/Env/here/of_round_%d_%d", k, i))
			case 1:
				paths = append(paths, fmt.Sprintf("/Fresh_%d/%d/%s/x", k, i/10, strings.Repeat("n", 1+random.IntN(60))+fmt.Sprint(i)))
			default:
				paths = append(paths, fmt.Sprintf("/Other/a/b/%d/%d/%d", i/100, random.IntN(10), 3000*k+i))
			}
		}
		h := listOf(t, d, paths...)
		list, err := d.List(h)
		require.NoError(t, err)
		for i, path := range paths {
			require.Equal(t, path, mustString(t, d, list.At(i)))
			index, _ := d.Index(list.At(i))
			for index != root {
				require.Less(t, d.ParentAt(index), index, "children have the larger index")
				index = d.ParentAt(index)
			}
		}
		require.NoError(t, d.ReleaseRef(h))
		list = nil
		compact(t, d)
	}
	for k := range 6 {
		round(k)
	}
	first := d.Stats()
	for k := 6; k < 60; k++ {
		round(k)
	}
	last := d.Stats()
	assert.Equal(t, first.Paths, last.Paths)
	assert.LessOrEqual(t, last.Bytes, first.Bytes+first.Bytes/4)
	list, err := d.List(stays)
	require.NoError(t, err)
	assert.Equal(t, "/Other/a/b/c/d", mustString(t, d, list.At(2)))
}

// Others intern, make lists and read them all the time: a list that is alive reads as it was made, a path that was interned by
// itself is what it was, and a number that nothing names is that path or none, never another.
func TestCompactWhileOthersIntern(t *testing.T) {
	d := open(t)
	var stop atomic.Bool
	var others, ready sync.WaitGroup
	adversary := func(step func(random *rand.Rand, k int)) {
		seed := rand.Uint64()
		others.Add(1)
		ready.Add(1)
		go func() {
			defer others.Done()
			random := rand.New(rand.NewPCG(seed, 1))
			for k := 0; !stop.Load(); k++ {
				if step(random, k); k == 0 {
					ready.Done()
				}
			}
		}()
	}
	paths := func(random *rand.Rand, n int) (texts []string) {
		for range n {
			texts = append(texts, fmt.Sprintf("/W/%c/%d/%d", 'a'+rune(random.IntN(3)), random.IntN(30), random.IntN(500)))
		}
		return texts
	}
	check := func(h ListHandle, texts []string) {
		list, err := d.List(h)
		if !assert.NoError(t, err) {
			return
		}
		for i, text := range texts {
			found, err := d.PathString(list.At(i))
			if !assert.NoError(t, err) || !assert.Equal(t, text, found) {
				stop.Store(true)
			}
		}
		assert.NoError(t, d.ReleaseRef(h))
	}
	for range 2 {
		adversary(func(random *rand.Rand, _ int) {
			texts := paths(random, 700)
			h, err := d.NewListFromStrings(texts)
			if assert.NoError(t, err) {
				check(h, texts)
			}
		})
	}
	adversary(func(random *rand.Rand, _ int) { // lists of numbers whose own list has gone
		texts := paths(random, 5)
		h := listOf(t, d, texts...)
		list, _ := d.List(h)
		var numbers []Path
		for i := range texts {
			numbers = append(numbers, list.At(i))
		}
		assert.NoError(t, d.ReleaseRef(h))
		list = nil
		runtime.Gosched()
		for i, number := range numbers {
			if text, err := d.PathString(number); err == nil {
				assert.Equal(t, texts[i], text)
			}
		}
		if h, err := d.NewList(numbers); err == nil {
			check(h, texts)
		}
	})
	adversary(func(random *rand.Rand, k int) { // a few that stay, and names on trial
		texts := []string{fmt.Sprintf("/W/stays/%d", k%50)}
		p := [1]Path{}
		if assert.NoError(t, d.Paths(texts, p[:])) {
			text, err := d.PathString(p[0])
			assert.NoError(t, err)
			assert.Equal(t, texts[0], text)
		}
		token, trial, err := d.Try(fmt.Sprint(random.IntN(600)))
		if assert.NoError(t, err) && trial {
			d.Withdraw(token)
		}
		_, unknown, err := d.NewListOfKnown([]string{"/W/stays/0", "/nowhere"})
		assert.NoError(t, err)
		assert.LessOrEqual(t, unknown, 1)
	})
	ready.Wait()
	for range 60 {
		compact(t, d)
	}
	stop.Store(true)
	others.Wait()
	require.False(t, t.Failed())
	compact(t, d)
	assert.Less(t, d.Stats().Paths, 200, "of what has gone nothing is left")
}

// Holes of every size come and go, and no text is written over another.
func TestHolesAgainstTexts(t *testing.T) {
	var text text
	defer text.close()
	random := rand.New(rand.NewPCG(9, 9))
	alive := map[span]string{}
	for k := range 20_000 {
		s := fmt.Sprint(k) + strings.Repeat("x", random.IntN(1+random.IntN(300)))
		at, err := text.add(s)
		require.NoError(t, err)
		_, taken := alive[at]
		require.False(t, taken)
		alive[at] = s
		for at, s := range alive {
			if len(alive) < 200 {
				break
			}
			require.Equal(t, s, text.at(at))
			text.takeBack(at)
			delete(alive, at)
		}
		if k%1000 == 0 {
			text.holes.join()
		}
	}
	for at, s := range alive {
		require.Equal(t, s, text.at(at))
	}
	assert.LessOrEqual(t, text.bytes(), int64(2*chunkSize))
}

// A text that is longer than a chunk leaves a hole that others can use, as far as a span reaches.
func TestHoleOfALongText(t *testing.T) {
	var text text
	defer text.close()
	long, err := text.add(strings.Repeat("l", 3*chunkSize))
	require.NoError(t, err)
	_, err = text.add("behind it")
	require.NoError(t, err)
	text.takeBack(long)
	for k := range 2 * chunkSize / 1000 {
		s := strings.Repeat(fmt.Sprint(k%10), 999)
		at, err := text.add(s)
		require.NoError(t, err)
		require.Equal(t, s, text.at(at))
	}
}
