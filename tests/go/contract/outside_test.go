package contract

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const program = `package main

import (
	"fmt"
	"os"

	"ovstage.dev/ovstage"
	"ovstage.dev/ovstage/gocore/stage"
)

func run() error {
	s := ovstage.New("outside")
	defer s.Close()
	prims, err := s.Prims("/A", "/B")
	if err != nil {
		return err
	}
	if err := ovstage.Write(prims, "p", 1, []float64{0.5, 1.5}); err != nil {
		return err
	}
	if _, err := s.Engine().AdvanceFloor(1, stage.All, nil); err != nil {
		return err
	}
	column, err := ovstage.Read[float64](prims, "p")
	if err != nil {
		return err
	}
	fmt.Println(column.Values(), column.Ordinal)
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`

// outside runs a program as a module outside of this tree, which names the checkout in its go.mod, as CONTRIBUTING says, and needs
// no host for it.
func outside(t *testing.T, program string) string {
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	folder := t.TempDir()
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	for name, content := range map[string]string{
		"main.go": program,
		"go.mod":  "module example.com/outside\n\ngo 1.26\n",
		"go.sum":  string(sums),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644))
	}
	run := func(args ...string) string {
		command := exec.Command("go", args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		out, err := command.CombinedOutput()
		require.NoError(t, err, "go %v: %s", args, out)
		return string(out)
	}
	run("mod", "edit", "-require=ovstage.dev/ovstage@v0.1.0", "-replace=ovstage.dev/ovstage="+root)
	return run("run", ".")
}

func TestAModuleOutsideBuildsAndRuns(t *testing.T) {
	assert.Equal(t, "[0.5 1.5] 1\n", outside(t, program))
}

// The README's program runs as it stands there.
func TestTheReadmeRuns(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	assert.Equal(t, "/A [0 0 0]\n/B [0 0 0]\n", outside(t, block))
}
