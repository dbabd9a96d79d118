package config

import (
	"reflect"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// valueOf is an attribute as expressions see it: text, int, float64, decimal, bool,
// nil, []any (lists and sets) and map[string]any; binary is its base64. The value is
// incomplete if the work is spent.
func (w *work) valueOf(v item.Value) any {
	switch v.Kind() {
	case item.S:
		return v.Str()
	case item.N:
		return numberOf(v)
	case item.BOOL:
		return v.Bool()
	case item.B:
		text, _ := v.AppendText(nil)
		return string(text)
	case item.M:
		return w.mapOf(v.Map())
	case item.L:
		all := make([]any, 0, v.Len())
		for one := range v.List() {
			all = append(all, w.valueOf(one))
		}
		return all
	case item.SS, item.NS, item.BS:
		all := make([]any, 0, v.Len())
		for one := range v.Set() {
			all = append(all, w.valueOf(one))
		}
		sortSet(all) // a set has no order: two images may list its elements differently
		return all
	}
	return nil
}

func (w *work) mapOf(it sluice.Item) any {
	if !it.Exists() || w.spend(perMap+perElement*it.Len()) != nil {
		return nil
	}
	all := make(map[string]any, it.Len())
	for name, v := range it.All() {
		all[name] = w.valueOf(v)
	}
	return all
}

// sortSet sorts texts or numbers. It compares numbers of several types by their digits,
// and makes the digits of a number once.
func sortSet(all []any) {
	same := func(a any) bool { return reflect.TypeOf(a) == reflect.TypeOf(all[0]) }
	if len(all) == 0 || !slices.ContainsFunc(all, func(a any) bool { return !same(a) }) {
		slices.SortFunc(all, func(a, b any) int { c, _ := compare(a, b); return c })
		return
	}
	type number struct {
		digits string
		value  any
	}
	numbers := make([]number, len(all))
	for i, one := range all {
		numbers[i] = number{decimals(one), one}
	}
	slices.SortFunc(numbers, func(a, b number) int { return compareDecimals(a.digits, b.digits) })
	for i, n := range numbers {
		all[i] = n.value
	}
}
