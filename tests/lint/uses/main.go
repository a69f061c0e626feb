// Command uses prints what the files of Go packages use of each other: one line for each use of a name of the package's
// own, with the package's folder, the file that uses it, the file that defines it, and the name.
//
//	go run ./tests/lint/uses ./gocore/...
//
// Names are functions, methods, types, variables and constants of the package; fields are their type's. Tests are left out.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// listed is what `go list` says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	DepOnly                 bool
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "uses:", err)
		os.Exit(1)
	}
}

func run(patterns []string) error {
	packages, err := list(patterns)
	if err != nil {
		return err
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range packages {
		if p.DepOnly || len(p.CgoFiles) != 0 {
			continue
		}
		if err := show(p, fset, imports); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	return nil
}

func list(patterns []string) (packages []listed, err error) {
	command := exec.Command("go", append([]string{"list", "-export", "-deps", "-json"}, patterns...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

func show(p listed, fset *token.FileSet, imports types.Importer) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	checked, err := config.Check(p.ImportPath, fset, files, &info)
	if err != nil {
		return err
	}
	at := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	for name, object := range info.Uses {
		if object.Pkg() != checked || !global(object) {
			continue
		}
		if user, home := at(name.Pos()), at(object.Pos()); user != home {
			fmt.Println(p.Dir, user, home, object.Name())
		}
	}
	return nil
}

// global reports whether the object is one of the package, not of a function or a struct.
func global(object types.Object) bool {
	if object.Parent() == object.Pkg().Scope() {
		return true
	}
	f, ok := object.(*types.Func)
	return ok && f.Signature().Recv() != nil && !types.IsInterface(f.Signature().Recv().Type())
}
