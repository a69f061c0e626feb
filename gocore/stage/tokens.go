package stage

import (
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// postings returns the postings of an attribute, as of now.
func (s *Stage) postings(a *attribute) (*postings, error) {
	if a.postings == nil {
		all, err := s.holders(a, func(c *bound) (column.Rows, error) { return column.Run(0, c.Rows()), nil })
		if err != nil {
			return nil, err
		}
		a.postings = &postings{all: all}
	}
	p := a.postings
	if len(p.touched) > 0 && p.recent == nil {
		recent, err := s.holders(a, func(c *bound) (column.Rows, error) { return c.having(p.touched) })
		if err != nil {
			return nil, err
		}
		p.recent = &recent
		if len(p.touched) >= minTouched && 8*len(p.touched) > len(p.all.prims) {
			p.fold()
		}
	}
	return p, nil
}

// holders collects the tokens of an attribute from chosen rows of its columns.
func (s *Stage) holders(a *attribute, choose func(c *bound) (column.Rows, error)) (holders, error) {
	held := pairs{number: map[pathdict.Token]uint32{}}
	for _, c := range a.columns {
		if !s.holdsTokens(a, c.Schema()) {
			continue
		}
		rows, err := choose(c)
		if err == nil {
			err = held.collect(c.Column, rows)
			rows.Release()
		}
		if err != nil {
			return holders{}, err
		}
	}
	return held.sorted(), nil
}

// holdsTokens reports whether the values of a column are tokens. The types of the two attributes of USD are given; other
// columns say it by their role.
func (s *Stage) holdsTokens(a *attribute, schema column.Schema) bool {
	if schema.DType != (tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 1}) {
		return false
	}
	switch s.text(a.name) {
	case "usd-prim-type":
		return !schema.Array
	case "usd-schemas":
		return schema.Array
	}
	return !schema.Array && (schema.Semantic == tensor.SemanticTokenID || schema.Semantic == tensor.SemanticPathExpressionString)
}
