package column

// latest is the newest folded change of each row. Above the rows lie the newest of each 64 rows, and of each 64 times as many: what
// changed since an ordinal is found at the cost of what is found.
type latest struct {
	rows   []uint64 // an ordinal each, 0 for none; nil where they are not told apart
	blocks []uint64
	pages  []uint64
}

const perBlock, perPage = 64, 64 * 64

// grow makes room for n rows.
func (l *latest) grow(n int) {
	for _, level := range []struct {
		of   *[]uint64
		need int
	}{{&l.rows, n}, {&l.blocks, (n + perBlock - 1) / perBlock}, {&l.pages, (n + perPage - 1) / perPage}} {
		if missing := level.need - len(*level.of); missing > 0 {
			*level.of = append(*level.of, make([]uint64, missing)...)
		}
	}
}

// set notes a change of a row.
func (l *latest) set(row int, ordinal uint64) {
	l.rows[row] = ordinal
	l.blocks[row/perBlock] = max(l.blocks[row/perBlock], ordinal)
	l.pages[row/perPage] = max(l.pages[row/perPage], ordinal)
}

// forget drops what is known of a row. What lies above goes on to say that there may be something.
func (l *latest) forget(row int) { l.rows[row] = 0 }

// between calls visit for the rows whose newest change lies in [start, end]; start is above 0.
func (l *latest) between(start, end uint64, visit func(row int, ordinal uint64)) {
	for page, newest := range l.pages {
		if newest < start {
			continue
		}
		first := page * perPage / perBlock
		for block, newest := range l.blocks[first:min(first+perPage/perBlock, len(l.blocks))] {
			if newest < start {
				continue
			}
			row := (first + block) * perBlock
			for i, ordinal := range l.rows[row:min(row+perBlock, len(l.rows))] {
				if ordinal >= start && ordinal <= end {
					visit(row+i, ordinal)
				}
			}
		}
	}
}
