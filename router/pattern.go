package router

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Indexes of events, in a pattern's bit set and the match table.
const (
	insert = iota
	modify
	remove
	snapshot
	message
	events
)

var eventNames = [events]sluice.EventName{sluice.Insert, sluice.Modify, sluice.Remove, sluice.Snapshot, sluice.Delivery}

func eventIndex(name sluice.EventName) int {
	return slices.Index(eventNames[:], name)
}

// eventOf returns the event by which rec is routed, or -1.
func eventOf(rec *sluice.Record) int {
	event := eventIndex(rec.EventName)
	if event >= 0 && rec.Origin == sluice.Backfilled {
		return snapshot
	}
	return event
}

// pattern is one parsed `type#EVENT`.
type pattern struct {
	str    string
	typ    string // "" is any
	events uint8  // bit i for eventNames[i]
}

func (p pattern) has(event int) bool { return p.events&(1<<event) != 0 }

// imagesOf returns the images that contain the attributes of an item, for a
// pattern's set of events. Backfills and queues bring their own.
func imagesOf(set uint8) (v item.View) {
	for event, image := range [events]item.View{insert: item.NewImage, modify: item.AnyImage, remove: item.OldImage} {
		if set&(1<<event) != 0 {
			v |= image
		}
	}
	return v
}

// parsePatterns parses space-separated patterns. Its error has the byte offset of
// the mistake in s.
func parsePatterns(s string) (ps []pattern, err error) {
	off := 0
	defer func() {
		if err != nil {
			ps, err = nil, fmt.Errorf("pattern %q: at byte %d: %w", s, off, err)
		}
	}()
	for off < len(s) {
		if s[off] == ' ' {
			off++
			continue
		}
		word, _, _ := strings.Cut(s[off:], " ")
		p, fault, err := parsePattern(word)
		if err != nil {
			off += fault
			return nil, err
		}
		if slices.ContainsFunc(ps, func(q pattern) bool { return q.str == p.str }) {
			return nil, fmt.Errorf("%s is there twice", word)
		}
		ps = append(ps, p)
		off += len(word)
	}
	if len(ps) == 0 {
		return nil, fmt.Errorf("empty; want type#EVENT, such as search#INSERT")
	}
	return ps, nil
}

func parsePattern(word string) (p pattern, off int, err error) {
	if i := strings.IndexFunc(word, isSpaceOrControl); i >= 0 {
		return p, i, fmt.Errorf("%q in a pattern; separate patterns by single spaces", word[i])
	}
	sep := strings.LastIndexByte(word, '#')
	if sep < 0 {
		return p, len(word), fmt.Errorf("no '#' before the event; want type#EVENT, such as search#INSERT")
	}
	typ, event := word[:sep], word[sep+1:]
	switch {
	case typ == "":
		return p, 0, fmt.Errorf("empty type; write * for any")
	case typ == "*":
		typ = ""
	default:
		if i := strings.IndexByte(typ, '*'); i >= 0 {
			return p, i, fmt.Errorf("* within a type; it stands for a whole one")
		}
	}
	p = pattern{str: word, typ: typ}
	if event == "*" {
		p.events = 1<<insert | 1<<modify | 1<<remove
		return p, 0, nil
	}
	i := eventIndex(sluice.EventName(event))
	if i < 0 {
		if upper := strings.ToUpper(event); eventIndex(sluice.EventName(upper)) >= 0 {
			return p, sep + 1, fmt.Errorf("unknown event %q; did you mean %s?", event, upper)
		}
		return p, sep + 1, fmt.Errorf("unknown event %q; want INSERT, MODIFY, REMOVE, SNAPSHOT, MESSAGE or *", event)
	}
	p.events = 1 << i
	return p, 0, nil
}

func isSpaceOrControl(r rune) bool {
	return r <= ' ' || r == 0x7f || r == 0x85 || r == 0xa0
}
