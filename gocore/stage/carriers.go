package stage

import (
	"ovstage.dev/ovstage/gocore/column"
)

// count counts an attribute on prims, or off.
func (s *Stage) count(a *attribute, paths []uint32, change int) {
	if len(paths) == 0 {
		return
	}
	a.carriers.Change(paths, change)
	s.prims.Carry(a.name, paths, change > 0)
}

// appear counts an attribute on those prims of written rows that did not carry it before. A write that lies below a delete
// does not make a prim carry it again.
func (s *Stage) appear(a *attribute, c *bound, rows column.Rows) {
	alive := c.Alive(rows, column.Latest)
	rows.Each(func(i, row int) {
		if path := c.Path(row); alive[i] && !a.carriers.Has(path) {
			s.count(a, []uint32{path}, +1)
		}
	})
}

// vanish counts an attribute off those prims of deleted rows that carried it and do not any more. A delete that lies below a
// write changes nothing, whether the write has the same schema or another.
func (s *Stage) vanish(a *attribute, c *bound, rows column.Rows) {
	alive := c.Alive(rows, column.Latest)
	rewritten := func(o *bound, row int) bool { return o.Alive(column.Run(row, row+1), column.Latest)[0] }
	rows.Each(func(i, row int) {
		if path := c.Path(row); !alive[i] && a.carriers.Has(path) && !a.elsewhere(c, uint32(row), rewritten) {
			s.count(a, []uint32{path}, -1)
		}
	})
}
