package streamtest

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// overwrite changes the memory of a settled record. Its images stay well formed,
// so that a late reader sees wrong values and nothing worse: text becomes stars,
// and numbers change.
func overwrite(rec *sluice.Record) {
	overwriteItem(rec.Keys)
	overwriteItem(rec.Old)
	overwriteItem(rec.New)
	stars(rec.Raw())
}

func overwriteItem(it sluice.Item) {
	for _, v := range it.All() {
		overwriteValue(v)
	}
}

func overwriteValue(v item.Value) {
	raw := v.Raw()
	switch v.Kind() {
	case item.S:
		stars(raw[1 : len(raw)-1])
	case item.N:
		for i, c := range raw {
			switch {
			case c == '9':
				raw[i] = '8'
			case c >= '0' && c < '9':
				raw[i] = '9'
			}
		}
	case item.B:
		for i, c := range raw {
			switch c {
			case '"', '=':
			case 'A':
				raw[i] = 'Q' // its lower bits are zero, like those before padding
			default:
				raw[i] = 'A'
			}
		}
	case item.M:
		overwriteItem(v.Map())
	case item.L:
		for e := range v.List() {
			overwriteValue(e)
		}
	case item.SS, item.NS, item.BS:
		for e := range v.Set() {
			overwriteValue(e)
		}
	}
}

func stars(text []byte) {
	for i := range text {
		text[i] = '*'
	}
}
