package script

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

// codes are the names of the C interface.
var codes = map[stage.Code]string{
	stage.InvalidArgument:     "INVALID_ARGUMENT",
	stage.InvalidHandle:       "INVALID_HANDLE",
	stage.NotFound:            "NOT_FOUND",
	stage.PrimNotFound:        "PRIM_NOT_FOUND",
	stage.WriteFloorViolation: "WRITE_FLOOR_VIOLATION",
	stage.NotSupported:        "NOT_SUPPORTED",
	stage.OpFailed:            "OP_FAILED",
	stage.OutOfRange:          "OUT_OF_RANGE",
	stage.OutOfMemory:         "OUT_OF_MEMORY",
	stage.Internal:            "INTERNAL",
}

// refusal is the answer of a call that was refused, or whose operation failed later.
func refusal(how string, err error) []string {
	var own *stage.Error
	if !errors.As(err, &own) {
		return []string{fmt.Sprintf("%s %s: %s", how, codes[stage.InvalidArgument], err)}
	}
	return []string{fmt.Sprintf("%s %s: %s", how, codes[own.Code], own.Text)}
}

// group is the answer of a read for one of its groups.
func (p *player) group(g *stage.Group) (lines []string) {
	head := fmt.Sprintf("%s@%d", p.text(uint64(g.Attribute)), g.Ordinal)
	if g.Delete {
		return append([]string{head + " deleted"}, p.paths(g)...)
	}
	name := p.text(uint64(g.Type))
	head += " " + typed{g.DType, g.Array}.String()
	if g.Semantic != 0 {
		head += " " + g.Semantic.String()
	}
	if name != "" {
		head += " (" + name + ")"
	}
	if g.DataMap.Valid() && !g.Array {
		head += " indexed"
	}
	if strings.HasPrefix(p.text(uint64(g.Attribute)), "usd-") {
		name = paths
	}
	return append([]string{head}, p.rows(g, name)...)
}

// rows are the prims of a group with their values.
func (p *player) rows(g *stage.Group, name string) []string {
	lines := p.paths(g)
	t := typed{g.DType, g.Array}
	bytes := g.Data.Bytes()[g.DataOffset:]
	var spans []column.Span
	if g.Array && g.Spans.Valid() {
		spans = column.Spans(g.Spans, int(g.Count))
	}
	for k := range lines {
		row := k
		if g.DataMap.Valid() {
			row = int(g.DataMap.Uint32s(int(g.Count))[k])
		}
		if !g.Array {
			lines[k] += " " + t.decode(p.dict, g.Semantic, name, bytes[row*t.Size():][:t.Size()])
			continue
		}
		var values []string
		if span := spans[row]; span.Length > 0 {
			array := unsafe.Slice((*byte)(unsafe.Add(g.Data.Pointer(), span.Offset)), span.Length)
			for at := 0; at < len(array); at += t.Size() {
				values = append(values, t.decode(p.dict, g.Semantic, name, array[at:][:t.Size()]))
			}
		}
		lines[k] += " [" + strings.Join(values, " ") + "]"
	}
	return lines
}

// described is the layout of a group's tensors at the level of the stage: type and axes, of arrays the axes of each.
func (p *player) described(g *stage.Group) string {
	t, axes := typed{g.DType, g.Array}, ""
	if lanes := int(t.Lanes); p.newer && lanes > 1 {
		side := map[int]int{4: 2, 9: 3, 16: 4}[lanes]
		axes = fmt.Sprintf(",%d", lanes)
		if g.Semantic == tensor.SemanticMatrix && side > 0 {
			axes = fmt.Sprintf(",%d,%d", side, side)
		}
		t.Lanes = 1
	}
	line := p.text(uint64(g.Attribute)) + " " + t.String()
	if !g.Array {
		return fmt.Sprintf("%s %d%s", line, g.Count, axes)
	}
	for _, span := range column.Spans(g.Spans, int(g.Count)) {
		line += fmt.Sprintf(" %d%s", int(span.Length)/g.DType.Size(), axes)
	}
	return line
}

// paths are the prims of a group.
func (p *player) paths(g *stage.Group) []string {
	list, err := p.dict.List(g.List)
	if err != nil {
		panic(err)
	}
	lines := make([]string, g.PrimCount)
	for k := range lines {
		position := int(g.PrimOffset) + k
		if g.PrimMap.Valid() {
			position = int(g.PrimMap.Uint32s(int(g.PrimCount))[k])
		}
		if lines[k], err = p.dict.PathString(list.At(position)); err != nil {
			panic(err)
		}
	}
	return lines
}

// spans are where the arrays of a mapped group lie.
func (p *player) spans(g *stage.MapGroup) []column.Span { return column.Spans(g.Spans, g.Rows) }
