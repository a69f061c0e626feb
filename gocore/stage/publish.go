package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/prims"
)

// Deletion is one delete of a publication. It means what DeleteAttributes means.
type Deletion struct {
	Query      QueryID
	Attributes []pathdict.Token // none: the prims themselves
}

// Batch is what a publication writes to the prims of one query.
type Batch struct {
	Query  QueryID
	Writes []Write
}

// Publish deletes, then writes, in one operation at one ordinal: all of it, or nothing where any of it is refused. The writes
// are judged by what the deletes leave, so a prim may lose an attribute and get it back with another schema. They create
// prims and update them (Upsert). A prim gets one value of an attribute at most. The payloads are no longer needed when the
// call returns.
func (s *Stage) Publish(deletions []Deletion, batches []Batch, ordinal uint64) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	p := publication{Stage: s, ordinal: ordinal}
	defer p.release()
	for _, step := range []func() error{
		func() error { return p.judge(deletions, batches) },
		p.try,
		p.copyIn,
		func() error { return s.prepareAll(p.writes) },
	} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	p.keep()
	return s.succeed(), nil
}

// publication is a Publish on its way. Deletes and new columns come into being before it is known whether all of it can be done,
// because what is judged after them depends on them. They are taken back, last one first, where it can't, and before
// other operations could see them.
type publication struct {
	*Stage
	ordinal   uint64
	deletions []deletion
	writes    []judged
	doomed    []doomed // what the deletes have removed
	undo      []func()
}

// deletion is a Deletion whose query was looked up.
type deletion struct {
	prims *pathdict.List
	names []pathdict.Token
}

// judge looks the queries up and refuses what can't be done whatever the stage holds.
func (p *publication) judge(deletions []Deletion, batches []Batch) error {
	for _, d := range deletions {
		q, err := p.query(d.Query)
		if err != nil {
			return err
		}
		p.deletions = append(p.deletions, deletion{q.Prims, p.storedAll(d.Attributes)})
	}
	for _, b := range batches {
		q, err := p.query(b.Query)
		if err != nil {
			return err
		}
		for i := range b.Writes {
			p.writes = append(p.writes, judged{})
			if err := p.Stage.judge(&p.writes[len(p.writes)-1], q.Prims, &b.Writes[i], p.ordinal, Upsert); err != nil {
				return err
			}
		}
	}
	p.writes = slices.DeleteFunc(p.writes, func(w judged) bool { return w.prims.Len() == 0 })
	return p.checkApart()
}

// checkApart refuses two values of one attribute for one prim: the order in which they were meant is not known, and a column
// could not give the prim its row.
func (p *publication) checkApart() error {
	times := map[pathdict.Token]int{}
	for i := range p.writes {
		times[p.writes[i].name]++
	}
	seen := map[pathdict.Token]prims.Set{}
	for i := range p.writes {
		w := &p.writes[i]
		if times[w.name] == 1 {
			continue
		}
		set := seen[w.name]
		if at := slices.IndexFunc(w.prims.Indices(), set.Has); at >= 0 {
			return errorf(InvalidArgument, "attribute %q: prim %s is written twice in one publication; give each prim one value",
				p.quoted(w.name), p.path(w.prims.At(at)))
		}
		set.Change(w.prims.Indices(), +1)
		seen[w.name] = set
	}
	return nil
}

// try deletes, and finds or makes the columns of the writes as they are then. All of it can be taken back.
func (p *publication) try() error {
	for _, d := range p.deletions {
		if err := p.delete(d); err != nil {
			return err
		}
	}
	for i := range p.writes {
		if err := p.assign(&p.writes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *publication) delete(d deletion) error {
	for _, name := range d.names {
		if _, _, err := p.target("deleted", name, p.ordinal); err != nil {
			return err
		}
	}
	found, err := p.doom(d.prims, d.names, p.ordinal)
	p.doomed = append(p.doomed, found...)
	if err != nil {
		return err
	}
	for _, f := range found {
		f.column.Delete(f.rows, p.ordinal)
		p.undo = append(p.undo, func() { f.column.Undelete(p.ordinal) })
	}
	return nil
}

// assign finds the column of a write. The writes that follow see it as this write makes it: new, or with its role.
func (p *publication) assign(w *judged) (err error) {
	w.attribute = p.attributes[w.name]
	if err := p.checkFloor(w.attribute, w.name, p.ordinal); err != nil {
		return err
	}
	if w.column, err = p.columnFor(w.attribute, w.prims, w.schema, p.ordinal); err != nil {
		return err
	}
	if w.column == nil {
		w.column = p.create(w)
	}
	c, before := w.column, w.column.Schema()
	if w.attribute.stamp(c, w.schema); c.Schema() != before {
		p.undo = append(p.undo, func() {
			c.Stamp(before.Semantic)
			c.StampType(before.Type)
		})
	}
	return nil
}

// create makes a column, and its attribute if need be.
func (p *publication) create(w *judged) *bound {
	_, known := p.attributes[w.name]
	a, c := p.known(w.name), p.newColumn(w.schema)
	w.attribute = a
	p.attach(a, c)
	p.undo = append(p.undo, func() {
		last := len(a.columns) - 1
		a.columns = slices.Delete(a.columns, last, last+1)
		c.bindings.Close()
		c.Column.Close()
		if last == 0 {
			delete(p.inUse, a.name)
		}
		if !known {
			delete(p.attributes, a.name)
		}
	})
	return c
}

// copyIn copies the payloads. Others may go on during a long copy, and must not see what was tried: it is tried again.
func (p *publication) copyIn() error {
	total, err := p.makeRoom(p.writes)
	if err != nil {
		return err
	}
	if total < unlockFrom {
		fill(p.writes)
		return nil
	}
	p.takeBack()
	p.fillUnlocked(p.writes)
	if err := p.checkOpen(); err != nil {
		return err
	}
	return p.try()
}

// keep makes final what was tried, and records the writes. Nothing in it fails.
func (p *publication) keep() {
	p.undo = nil
	for _, d := range p.doomed {
		p.vanish(d.attribute, d.column, d.rows)
		p.noteDelete(d.attribute, d.column, d.rows)
	}
	p.recordAll(p.writes, p.ordinal)
}

// takeBack leaves the stage as it was before try.
func (p *publication) takeBack() {
	for _, undo := range slices.Backward(p.undo) {
		undo()
	}
	for _, d := range p.doomed {
		d.rows.Release()
	}
	p.undo, p.doomed = nil, nil
}

// release ends the references that the publication still holds, and takes back what it did not keep.
func (p *publication) release() {
	for i := range p.writes {
		p.writes[i].release()
	}
	p.takeBack()
}
