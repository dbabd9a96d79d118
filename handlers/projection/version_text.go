package projection

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// units are the words for the units of ByEpoch.
var units = map[string]time.Duration{"seconds": time.Second, "millis": time.Millisecond, "micros": time.Microsecond}

// ParseVersion returns the version that a text of a configuration names:
//
//	sequence                   BySequence()
//	none                       Unversioned()
//	attribute:rev              ByAttribute("rev")
//	seconds:updatedAt          ByEpoch("updatedAt", time.Second); likewise millis, micros
//	attribute:createdAt,rev    ByAttribute("createdAt").Then("rev")
//	seconds:createdAt,rev      ByEpoch("createdAt", time.Second).Then("rev"); likewise millis, micros
func ParseVersion(text string) (Version, error) {
	form, path, _ := strings.Cut(text, ":")
	var v Version
	switch {
	case text == "sequence":
		return BySequence(), nil
	case text == "none":
		return Unversioned(), nil
	case form == "attribute":
		v = ByAttribute(path)
	case units[form] != 0:
		v = ByEpoch(path, units[form])
	default:
		return v, errors.New("want sequence, none, attribute:<path>, seconds:<path>, millis:<path> or micros:<path>")
	}
	path, counter, pair := strings.Cut(path, ",")
	switch {
	case path == "":
		return v, fmt.Errorf("%s: names no attribute", form)
	case pair && (counter == "" || strings.Contains(counter, ",")):
		return v, fmt.Errorf("%s: want two attributes: when the item was made, and a counter", form)
	}
	v.path, v.counter = path, counter
	return v, nil
}

// ParseAttribute is [ParseVersion] of a text that may leave out attribute:.
func ParseAttribute(text string) (Version, error) {
	if form, _, _ := strings.Cut(text, ":"); units[form] == 0 {
		text = "attribute:" + strings.TrimPrefix(text, "attribute:")
	}
	return ParseVersion(text)
}
