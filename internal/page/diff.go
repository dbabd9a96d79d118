package page

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// attribute is an attribute of an item before and after a change.
type attribute struct {
	Name     string
	Old, New string // JSON
	In       string // both, old or new: the images that have it
	Changed  bool
	Cut      bool // a value is not shown whole
}

const (
	mostValue      = 2 << 10 // bytes of a value that are shown
	mostAttributes = 200
)

// images compares the images of a record: what has changed comes first. more is how
// many attributes are left out.
func images(rec *sluice.Record) (shown []attribute, more int) {
	var all []attribute
	of := func(name, in string, before, after item.Value) {
		form := item.JSON{SortedKeys: true, SortedSets: true}
		a := attribute{Name: cut(mostValue, name), In: in, Changed: in != "both" || !before.Equal(after)}
		if in != "new" {
			a.Old = string(before.AppendJSON(nil, form))
		}
		if in != "old" {
			a.New = string(after.AppendJSON(nil, form))
		}
		a.Cut = len(a.Old) > mostValue || len(a.New) > mostValue
		a.Old, a.New = cut(mostValue, a.Old), cut(mostValue, a.New)
		all = append(all, a)
	}
	after := make(map[string]item.Value)
	for name, v := range rec.New.All() {
		after[name] = v
	}
	for name, v := range rec.Old.All() {
		if now, ok := after[name]; ok {
			of(name, "both", v, now)
			delete(after, name)
			continue
		}
		of(name, "old", v, item.Value{})
	}
	for name, v := range after {
		of(name, "new", item.Value{}, v)
	}
	slices.SortFunc(all, func(a, b attribute) int {
		if a.Changed != b.Changed {
			return map[bool]int{true: -1, false: 1}[a.Changed]
		}
		return cmp.Compare(a.Name, b.Name)
	})
	n := min(len(all), mostAttributes)
	return all[:n], len(all) - n
}
