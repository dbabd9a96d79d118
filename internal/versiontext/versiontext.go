// Package versiontext reads the versions of projections as flags and files have them.
package versiontext

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/handlers/projection"
)

// units are the words for the units of ByEpoch.
var units = map[string]time.Duration{"seconds": time.Second, "millis": time.Millisecond, "micros": time.Microsecond}

// Parse returns the version that a text of a configuration names:
//
//	sequence                   BySequence()
//	none                       Unversioned()
//	attribute:rev              ByAttribute("rev")
//	seconds:updatedAt          ByEpoch("updatedAt", time.Second); likewise millis, micros
//	attribute:createdAt,rev    ByAttribute("createdAt").Then("rev")
//	seconds:createdAt,rev      ByEpoch("createdAt", time.Second).Then("rev"); likewise millis, micros
func Parse(text string) (v projection.Version, err error) {
	form, path, _ := strings.Cut(text, ":")
	path, counter, pair := strings.Cut(path, ",")
	switch {
	case text == "sequence":
		return projection.BySequence(), nil
	case text == "none":
		return projection.Unversioned(), nil
	case form == "attribute":
		v = projection.ByAttribute(path)
	case units[form] != 0:
		v = projection.ByEpoch(path, units[form])
	default:
		return v, errors.New("want sequence, none, attribute:<path>, seconds:<path>, millis:<path> or micros:<path>")
	}
	switch {
	case path == "":
		return v, fmt.Errorf("%s: names no attribute", form)
	case pair && (counter == "" || strings.Contains(counter, ",")):
		return v, fmt.Errorf("%s: want two attributes: when the item was made, and a counter", form)
	}
	if pair {
		v = v.Then(counter)
	}
	return v, nil
}

// ParseAttribute is [Parse] of a text that may leave out attribute:.
func ParseAttribute(text string) (projection.Version, error) {
	if form, _, _ := strings.Cut(text, ":"); units[form] == 0 {
		text = "attribute:" + strings.TrimPrefix(text, "attribute:")
	}
	return Parse(text)
}
