package scene

import (
	"fmt"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

func failf(code stage.Code, format string, args ...any) error {
	return &stage.Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

func unknownPath(argument string, path pathdict.Path) error {
	return failf(stage.InvalidArgument, "%s: %d is not a path of this stage's dictionary; intern the path first", argument, path)
}
