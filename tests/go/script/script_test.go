package script_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/tests/go/script"
)

var rewrite = flag.Bool("rewrite", false, "write the answers that the stage gives into the scripts")

const folder = "../../scripts"

// Every script is one test. Python and C play the same files.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob(folder + "/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			rewritten, differences, err := script.Play(string(text))
			require.NoError(t, err)
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(rewritten), 0o644))
				return
			}
			for _, d := range differences {
				t.Errorf("%s, %s", file, d)
			}
		})
	}
}

// A runner that answers for the stage, or takes any answer, would be worse than none.
func TestRunnerTellsDifferences(t *testing.T) {
	for name, text := range map[string]string{
		"another value":   "write /A p@1 int32 1\nseal 1\nread latest 1 /A p\n    p@1 int32\n    /A 2\n",
		"no answer":       "floor\n",
		"too much":        "floor\n    0\n    1\n",
		"other text":      "write /A p@0 int32 1\n    refused WRITE_FLOOR_VIOLATION: nonsense...\n",
		"no refusal":      "write /A p@1 int32 1\n    refused INVALID_ARGUMENT: ...\n",
		"not the ordinal": "write /A p@1 int32 1\nseal 1\nread latest 1 /A p\n    p@2 int32\n    /A 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, differences, err := script.Play(text)
			require.NoError(t, err)
			require.Len(t, differences, 1)
		})
	}
	for name, text := range map[string]string{
		"unknown command": "wirte /A p@1 int32 1\n",
		"no type":         "write /A p@1 int33 1\n",
		"open bracket":    "write /A p@1 int32[] [1\n",
		"no command":      "    p@1\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := script.Play(text)
			require.Error(t, err)
		})
	}
}
