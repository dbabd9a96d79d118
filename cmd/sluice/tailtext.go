package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fatih/color"

	"github.com/sluicehq/sluice"
)

// text is a record for people: one line, and one more for each value with
// --values.
func (t *tail) text(rec *sluice.Record, typ string) string {
	var b strings.Builder
	at := "-"
	if !rec.Created.IsZero() {
		at = rec.Created.Local().Format("15:04:05")
	}
	if typ == "" {
		typ = "-"
	}
	p := t.paint
	fmt.Fprintf(&b, "%s  %s  %s  %s", p.faint(at), p.event(rec.EventName), p.bold(plain(typ)), keyText(rec.Keys))
	if rec.IsTTL() {
		b.WriteString("  " + p.faint("(expired)"))
	}
	names := changed(rec)
	if len(names) > 0 && !t.values {
		b.WriteString("  " + p.faint(plain(strings.Join(names, " "))))
	}
	if routes := t.takes(rec); routes != "" {
		b.WriteString("  → " + routes)
	}
	b.WriteByte('\n')
	if t.values {
		for _, name := range names {
			fmt.Fprintf(&b, "          %s: %s\n", plain(name), change(rec, name))
		}
	}
	return b.String()
}

func (p paint) event(name sluice.EventName) string {
	text := fmt.Sprintf("%-6s", plain(string(name)))
	switch name {
	case sluice.Insert:
		return p.good(text)
	case sluice.Remove:
		return p.bad(text)
	}
	return p.in(text, color.FgYellow)
}

// takes names the routes of the file that the record takes.
func (t *tail) takes(rec *sluice.Record) string {
	if len(t.router.Routes()) == 0 {
		return ""
	}
	routes, err := t.router.Match(nil, rec)
	if err != nil {
		return t.paint.bad("a dead letter: " + plain(err.Error()))
	}
	if len(routes) == 0 {
		return t.paint.faint("no route")
	}
	names := make([]string, len(routes))
	for i, r := range routes {
		names[i] = t.paint.in(r.Name, color.FgCyan)
	}
	return strings.Join(names, ", ")
}

// changed are the attributes that a change has set, altered or removed, but
// those of the key: in the order of the new image, and then of the old one. A
// stream without the images says nothing of them.
func changed(rec *sluice.Record) []string {
	isKey := func(name string) bool { _, ok := rec.Keys.Lookup(name); return ok }
	if rec.EventName == sluice.Modify && (!rec.Old.Exists() || !rec.New.Exists()) {
		return nil // the stream's view does not tell
	}
	var names []string
	for name, v := range rec.New.All() {
		old, had := rec.Old.Lookup(name)
		if !isKey(name) && (!had || !old.Equal(v)) {
			names = append(names, name)
		}
	}
	for name := range rec.Old.All() {
		if _, has := rec.New.Lookup(name); !has && !isKey(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// change is what happened to one attribute, with its values.
func change(rec *sluice.Record, name string) string {
	old, had := rec.Old.Lookup(name)
	value, has := rec.New.Lookup(name)
	switch {
	case had && has:
		return valueText(old) + " → " + valueText(value)
	case has:
		return valueText(value)
	}
	return valueText(old) + " → (removed)"
}
