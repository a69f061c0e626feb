package stage

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/bitset"
)

// A play that fails says what was done, as a script of tests/scripts: run its commands with -rewrite, and put the answers right.
// It is shortened first: steps are left out as long as the play still fails.

// playOut plays random steps; where that fails, it prints the shortest script that was found to fail.
func playOut(t *testing.T, seed uint64, steps int, prepare func(*play)) {
	all := make([]int, steps)
	for i := range all {
		all[i] = i
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("\n# %s\n%s", t.Name(), strings.Join(shortened(seed, all, prepare), "\n"))
		}
	})
	p := newPlay(t, seed)
	prepare(p)
	p.run(seed, all)
}

// shortened is the script of the fewest steps that still fail, by leaving out halves, quarters and so on.
func shortened(seed uint64, steps []int, prepare func(*play)) []string {
	script, failed := tried(seed, steps, prepare)
	if !failed {
		return append(script, "# it does not fail again: see the first failure")
	}
	for size := (len(steps) + 1) / 2; size > 0; {
		shorter := false
		for from := 0; from < len(steps); {
			rest := append(append([]int(nil), steps[:from]...), steps[min(from+size, len(steps)):]...)
			if found, failed := tried(seed, rest, prepare); failed {
				steps, script, shorter = rest, found, true
			} else {
				from += size
			}
		}
		if !shorter || size > len(steps) {
			size /= 2
		}
	}
	return script
}

// tried plays steps under a test of their own, whose failure is nobody's but ours.
func tried(seed uint64, steps []int, prepare func(*play)) (script []string, failed bool) {
	var p *play
	done := make(chan bool)
	go func() { // a failure ends the goroutine
		ended := false
		defer func() {
			_ = recover() // a panic of the engine is a failure, too
			done <- !ended
		}()
		p = newPlay(&testing.T{}, seed)
		prepare(p)
		p.run(seed, steps)
		ended = !p.T.Failed()
	}()
	failed = <-done
	if p == nil {
		return nil, failed
	}
	script = p.script
	if p.mu.TryLock() { // else a panic left it locked
		p.mu.Unlock()
		for _, h := range p.held {
			h.group.Release(p.dict)
		}
		p.Stage.Close()
	}
	return script, failed
}

func (p *play) say(format string, args ...any) {
	p.script = append(p.script, fmt.Sprintf(format, args...))
}

func (p *play) sayPublish(ordinal uint64, doomed [][]string, deletions []Deletion, batches []Batch) {
	line := fmt.Sprintf("publish %d", ordinal)
	for i, paths := range doomed {
		line += fmt.Sprintf(" - %s %s", strings.Join(paths, ","), map[bool]string{true: "*", false: "p"}[deletions[i].Attributes == nil])
	}
	for _, b := range batches {
		view := b.Writes[0].Payload.Views[0]
		values := unsafe.Slice((*float3)(view.Data), view.Shape[0])
		line += fmt.Sprintf(" + %s p float32x3%s", strings.Join(p.listed(b.Query), ","), spelled(values))
	}
	p.say("%s", line)
}

// listed are the paths of a query.
func (p *play) listed(id QueryID) (paths []string) {
	list := p.queries[id].Prims
	for i := range list.Len() {
		text, err := p.dict.PathString(list.At(i))
		require.NoError(p.T, err)
		paths = append(paths, text)
	}
	return paths
}

func spelled(values []float3) string {
	var text strings.Builder
	for _, v := range values {
		fmt.Fprintf(&text, " %g,%g,%g", v[0], v[1], v[2])
	}
	return text.String()
}

// chosenRows are the options of a sparse write.
func chosenRows(p *Payload) string {
	if p.IndexMap != nil {
		return "rows=" + strings.ReplaceAll(strings.Trim(fmt.Sprint(p.IndexMap), "[]"), " ", ",")
	}
	bits := bytes.Repeat([]byte("0"), int(p.Count))
	bitset.Set(p.Mask).EachIn(0, len(bits), func(i int) { bits[i] = '1' })
	return "mask=" + string(bits)
}

// With a planted fault, deletes that the model forgets, the script is down to what shows it: a write, a delete and a seal.
func TestAFailingPlayIsShortened(t *testing.T) {
	forgetful := func(p *play) { p.forgetful = true }
	all := make([]int, 120)
	for i := range all {
		all[i] = i
	}
	_, failed := tried(3, all, forgetful)
	require.True(t, failed)
	script := shortened(3, all, forgetful)
	assert.LessOrEqual(t, len(script), 20, strings.Join(script, "\n"))
	text := strings.Join(script, "\n")
	t.Log("\n" + text)
	for _, command := range []string{"delete ", "seal ", "read latest "} {
		assert.Contains(t, text, command)
	}
}
