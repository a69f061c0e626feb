// Package script plays golden scripts, the files of tests/scripts, on a stage. Their README has the language.
//
// script.go is the file format, values.go what values look like, play.go the commands, show.go their answers.
package script

import (
	"fmt"
	"strings"
)

// indent is what tells an answer from a command.
const indent = "    "

// Difference is a command whose answer is not the one below it.
type Difference struct {
	Line      int // of the command, from 1
	Command   string
	Want, Got []string
}

func (d Difference) String() string {
	return fmt.Sprintf("line %d: %s\n  expected:\n%s  got:\n%s", d.Line, d.Command, listed(d.Want), listed(d.Got))
}

func listed(lines []string) string {
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&text, "%s%s\n", indent, line)
	}
	return text.String()
}

// Play plays a script on a stage of its own. It returns the script with the answers that it got, and where they differ. The
// error is a mistake in the script, or something that was still alive when all was given back.
func Play(text string) (rewritten string, differences []Difference, err error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	p := open()
	defer func() { err = p.close(err) }()
	var out strings.Builder
	for at := 0; at < len(lines); {
		line := strings.TrimRight(lines[at], " ")
		at++
		out.WriteString(line + "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == ' ' {
			return "", nil, fmt.Errorf("line %d: an answer without a command: %q; commands begin in the first column", at, line)
		}
		d := Difference{Line: at, Command: line}
		for ; at < len(lines) && strings.HasPrefix(lines[at], indent); at++ {
			d.Want = append(d.Want, strings.TrimSpace(lines[at]))
		}
		if d.Got, err = p.do(line); err != nil {
			return "", nil, fmt.Errorf("line %d: %s: %w", d.Line, line, err)
		}
		if agree(d.Want, d.Got) {
			out.WriteString(listed(d.Want)) // an answer may be cut short by "..."
		} else {
			differences = append(differences, d)
			out.WriteString(listed(d.Got))
		}
	}
	return out.String(), differences, nil
}

func agree(want, got []string) bool {
	if len(want) != len(got) {
		return false
	}
	for i, line := range want {
		head, cut := strings.CutSuffix(line, "...")
		if line != got[i] && !(cut && strings.HasPrefix(got[i], head)) {
			return false
		}
	}
	return true
}

// words cuts a command at its spaces. What stands in "quotes" or [brackets] is one word.
func words(line string) (list []string, err error) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		end := 0
		for until := byte(' '); end < len(line) && (line[end] != until || until != ' '); end++ {
			switch c := line[end]; {
			case until != ' ' && c == until:
				until = ' '
			case until == ' ' && c == '"':
				until = '"'
			case until == ' ' && c == '[' && end == 0:
				until = ']'
			}
		}
		word := line[:end]
		if word[0] == '[' && word[end-1] != ']' || strings.Count(word, `"`)%2 != 0 {
			return nil, fmt.Errorf("%s is not closed", word)
		}
		list, line = append(list, word), line[end:]
	}
	return list, nil
}
