package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fatih/color"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// text is a record for people: one line, and one more for each value with
// --values.
func (t *tail) text(ctx context.Context, rec *sluice.Record, typ string) string {
	var b strings.Builder
	at := "-"
	if !rec.Created.IsZero() {
		at = rec.Created.Local().Format("15:04:05")
	}
	typ = cmp.Or(typ, "-")
	p := t.paint
	fmt.Fprintf(&b, "%s  %s  %s  %s", p.faint(at), p.event(rec.EventName), p.bold(plain(typ)), keyText(rec.Keys))
	if rec.IsTTL() {
		b.WriteString("  " + p.faint("(expired)"))
	}
	names := changed(rec)
	if len(names) > 0 && !t.values {
		b.WriteString("  " + p.faint(strings.Join(retyped(rec, names), " ")))
	}
	if routes := t.takes(ctx, rec); routes != "" {
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
func (t *tail) takes(ctx context.Context, rec *sluice.Record) string {
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
		if why := t.fails(ctx, r.Name, rec); why != nil {
			names[i] += " " + t.paint.bad("(would fail: "+plain(why.Error())+")")
		}
	}
	return strings.Join(names, ", ")
}

// fails says why a route would fail for a record, as far as the record alone
// tells: no table is read for it.
func (t *tail) fails(ctx context.Context, route string, rec *sluice.Record) error {
	built := t.app.Route(route)
	if built.When != nil {
		if _, err := built.When(rec); err != nil {
			return err
		}
	}
	if built.Explain == nil || !slices.Contains([]string{"send", "project", "log"}, built.Kind) {
		return nil
	}
	if _, err := built.Explain(ctx, rec); err != nil && !sluice.IsSkip(err) {
		return err
	}
	return nil
}

// retyped adds to the names of attributes how their types changed: total(S→N).
func retyped(rec *sluice.Record, names []string) []string {
	names = slices.Clone(names)
	for i, name := range names {
		old, had := rec.Old.Lookup(name)
		value, has := rec.New.Lookup(name)
		if names[i] = plain(name); had && has && old.Kind() != value.Kind() {
			names[i] += "(" + old.Kind().String() + "→" + value.Kind().String() + ")"
		}
	}
	return names
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
		return typedText(old) + " → " + typedText(value)
	case has:
		return typedText(value)
	}
	return typedText(old) + " → (removed)"
}

// typedText is a value for people. A text that could be taken for a number, or for
// true, false or null, has its quotes.
func typedText(v item.Value) string {
	if v.Kind() != item.S || !json.Valid([]byte(v.Str())) {
		return valueText(v)
	}
	return plain(strconv.Quote(v.Str()))
}
