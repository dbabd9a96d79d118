package deadletter

import (
	"maps"
	"strings"
)

const (
	mostDetails = 20      // errors with details per failure
	mostDetail  = 4 << 10 // bytes of one detail
)

// detailsOf returns the details of the errors in err's tree, in the order of their
// texts. An error has details if it has a method
//
//	Details() map[string]string
//
// such as *document.Error, with index, id, status and reason.
func detailsOf(err error) []map[string]string {
	var all []map[string]string
	var walk func(error)
	walk = func(err error) {
		if err == nil || len(all) == mostDetails {
			return
		}
		if told, ok := err.(interface{ Details() map[string]string }); ok {
			if d := bounded(told.Details()); len(d) > 0 {
				all = append(all, d)
			}
		}
		switch err := err.(type) {
		case interface{ Unwrap() error }:
			walk(err.Unwrap())
		case interface{ Unwrap() []error }:
			for _, e := range err.Unwrap() {
				walk(e)
			}
		}
	}
	walk(err)
	return all
}

// bounded returns a bounded copy to keep.
func bounded(d map[string]string) map[string]string {
	d = maps.Clone(d)
	for k, v := range d {
		d[k] = cut(v, mostDetail)
	}
	return d
}

// cut shortens a text to most bytes, and makes it survive JSON unchanged.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
