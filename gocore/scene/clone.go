package scene

import (
	"slices"
	"strings"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// Clone copies everything that the prims at and below source hold as of an ordinal, sealed or not, to each target at that
// ordinal. It creates only: nothing may exist at or below a target. All of it is done or nothing.
//
// Targets of relationships and connections that lie in the source lie in the copy afterwards, properties of its prims
// included; others stay. World transforms are copied like all else: compute them anew where they matter.
//
// The rows of one target follow each other in each column, in the order of the source's. Arrays are stored once for all
// targets, unless they hold paths.
func (s *Scene) Clone(source string, targets []string, ordinal uint64) (op uint64, err error) {
	c := clone{dict: s.dict, source: source, ordinal: ordinal}
	if err := c.read(targets); err != nil {
		return 0, err
	}
	return s.stage.Submit(c.run)
}

// read judges the arguments by themselves.
func (c *clone) read(targets []string) error {
	var from [1]pathdict.Path
	if err := c.dict.LookupPaths([]string{c.source}, from[:]); err != nil {
		return failf(stage.InvalidArgument, "source_path: %s", err)
	}
	c.from, c.known = c.dict.Index(from[0])
	if err := c.dict.LookupPaths(targets, make([]pathdict.Path, len(targets))); err != nil {
		return failf(stage.InvalidArgument, "target_paths: %s", err)
	}
	c.targets = targets
	at := make(map[string]int, len(targets))
	for i, target := range targets {
		if before, again := at[target]; again {
			return failf(stage.InvalidArgument, "target_paths[%d] and target_paths[%d] are both %s; list each target once", before, i, target)
		}
		at[target] = i
	}
	for i, target := range targets {
		for above := target; above != "/"; {
			above = above[:max(1, strings.LastIndexByte(above, '/'))]
			if c.known && above == c.source {
				return failf(stage.InvalidArgument, "target_paths[%d]: %s lies inside the source %s; clone to a path outside of it",
					i, target, c.source)
			}
			if outer, nested := at[above]; nested {
				return failf(stage.InvalidArgument, "target_paths[%d]: %s lies inside target_paths[%d], %s; targets must be apart",
					i, target, outer, targets[outer])
			}
		}
	}
	return nil
}

func (c *clone) run(tx stage.Tx) error {
	c.tx = tx
	defer c.close()
	if err := c.collect(); err != nil {
		return err
	}
	if err := c.checkTargets(); err != nil {
		return err
	}
	if len(c.targets) == 0 {
		return nil
	}
	if err := c.intern(); err != nil {
		return err
	}
	if failure := c.copy(); failure != nil {
		return failf(stage.OutOfMemory, "cloning %s to %d targets: %s", c.source, len(c.onto), failure)
	}
	made := c.made
	c.made = nil // the stage's now
	return tx.Create(c.ordinal, made...)
}

func (c *clone) close() {
	for _, part := range c.parts {
		part.rows.Release()
	}
	for _, m := range c.made {
		m.Release()
	}
}

// collect finds what there is to copy, and refuses it if any of it can't be written at the ordinal.
func (c *clone) collect() error {
	prims := c.candidates()
	err := c.tx.Attributes(prims, func(name pathdict.Token, columns []*column.Column, floor uint64) error {
		for _, from := range columns {
			rows, failure := holding(from, prims, c.ordinal)
			if failure != nil {
				return failf(stage.OutOfMemory, "attribute %q: %s", c.tx.Text(name), failure)
			}
			if rows.Len() == 0 {
				continue
			}
			c.parts = append(c.parts, copied{name, from, rows})
			if c.ordinal <= floor {
				return failf(stage.WriteFloorViolation, "attribute %q of the source %s: ordinal %d is sealed, the write floor is %d; clone at an ordinal above it",
					c.tx.Text(name), c.source, c.ordinal, floor)
			}
		}
		return nil
	})
	if err == nil && len(c.parts) == 0 {
		err = failf(stage.OpFailed, "source_path: there is no prim at or below %s as of ordinal %d", c.source, c.ordinal)
	}
	return err
}

// candidates lists the prims of the source: those that exist, and those that were deleted above the ordinal only.
func (c *clone) candidates() (prims []uint32) {
	if !c.known {
		return nil
	}
	c.tx.Below(c.from, func(path uint32) { prims = append(prims, path) })
	_ = c.tx.Attributes(nil, func(_ pathdict.Token, columns []*column.Column, _ uint64) error {
		for _, from := range columns {
			from.DeletedAbove(c.ordinal).Each(func(row int) {
				if path := from.Path(row); c.inside(path) {
					prims = append(prims, path)
				}
			})
		}
		return nil
	})
	slices.Sort(prims)
	return slices.Compact(prims)
}

// inside reports whether a path is the source or lies below it.
func (c *clone) inside(path uint32) bool {
	for path > c.from { // indices rise from parent to child
		path = c.dict.ParentAt(path)
	}
	return path == c.from
}

// holding returns the rows of those prims that hold a value as of an ordinal, ascending.
func holding(c *column.Column, prims []uint32, ordinal uint64) (column.Rows, error) {
	if err := c.PrepareRows(); err != nil {
		return column.Rows{}, err
	}
	var found []uint32
	for _, path := range prims {
		if row := c.Row(path); row >= 0 {
			found = append(found, uint32(row))
		}
	}
	slices.Sort(found)
	index, err := memory.Alloc(4*len(found), memory.Indices)
	if err != nil || len(found) == 0 {
		index.Release()
		return column.Rows{}, err
	}
	copy(index.Uint32s(len(found)), found)
	rows := column.Indexed(index, len(found))
	defer rows.Release()
	return rows.Where(c.Alive(rows, ordinal))
}

// checkTargets refuses targets that exist. A target whose path is not interned doesn't exist.
func (c *clone) checkTargets() error {
	paths := make([]pathdict.Path, len(c.targets))
	if err := c.dict.LookupPaths(c.targets, paths); err != nil {
		return failf(stage.InvalidArgument, "target_paths: %s", err)
	}
	for i, path := range paths {
		target, known := c.dict.Index(path)
		if !known {
			continue
		}
		if prim, occupied := c.tx.Occupied(target); occupied {
			return failf(stage.OpFailed, "target_paths[%d]: prim %s already exists; nothing was cloned, delete it first or choose another target",
				i, c.tx.Path(prim))
		}
	}
	return nil
}

// intern gives the targets their paths, once nothing but missing memory stands in the way of the clone.
func (c *clone) intern() error {
	paths := make([]pathdict.Path, len(c.targets))
	if err := c.dict.Paths(c.targets, paths); err != nil {
		return failf(stage.OutOfMemory, "target_paths: %s", err)
	}
	for _, path := range paths {
		target, _ := c.dict.Index(path)
		c.onto = append(c.onto, target)
	}
	return nil
}
