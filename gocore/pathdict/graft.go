package pathdict

import "slices"

// Graft interns a part of the tree of paths anew elsewhere: for each path of onto, those that stand to it as paths stand to
// from, without looking at text. paths are dense indices at or below from, ascending, and closed: with each, all between it and
// from are listed. The answer is dense indices, len(paths) of them for each path of onto.
func (d *Dictionary) Graft(from uint32, paths, onto []uint32) ([]uint32, error) {
	parents := make([]int, len(paths)) // positions; -1 for children of from
	for i, path := range paths {
		at, listed := slices.BinarySearch(paths[:i], d.ParentAt(path))
		if parents[i] = at; !listed {
			parents[i] = -1
		}
	}
	in := d.borrow(len(paths) * len(onto))
	defer d.giveBack(in)
	if err := in.graft(from, paths, parents, onto); err != nil {
		return nil, err
	}
	return slices.Clone(in.indices), nil
}

func (in *interner) graft(from uint32, paths []uint32, parents []int, onto []uint32) error {
	return in.each(func(at int) (err error) {
		k, i := at/len(paths), at%len(paths)
		root, grafted := onto[k], in.indices[k*len(paths):(k+1)*len(paths)]
		if paths[i] == from {
			grafted[i] = root
			return nil
		}
		parent := root
		if parents[i] >= 0 {
			parent = grafted[parents[i]]
		}
		grafted[i], err = in.child(parent, in.d.paths.at(paths[i]).name)
		return err
	})
}
