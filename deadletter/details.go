package deadletter

import (
	"maps"
	"strings"
)

const (
	mostDetails = 20      // errors of one failure that have details
	mostDetail  = 4 << 10 // bytes of one
)

// detailsOf returns what the errors in err's tree tell beside their text, in
// the order in which their texts stand. Those tell that have a method
//
//	Details() map[string]string
//
// such as *document.Error, whose index, id, status and reason are in it.
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

// bounded returns a copy that can be kept.
func bounded(d map[string]string) map[string]string {
	d = maps.Clone(d)
	for k, v := range d {
		d[k] = cut(v, mostDetail)
	}
	return d
}

// cut bounds a text, and makes it one that JSON keeps as it is.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
