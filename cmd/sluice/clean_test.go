package main

import (
	"io"
	"strings"
	"testing"

	"github.com/fatih/color"
)

// What items are called cannot do anything to a terminal, wherever it is printed.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain text\n\tü 漢 🎈":      "plain text\n\tü 漢 🎈",
		"\x1b]0;title\x07":         `\u001b]0;title\u0007`,
		"\x1b[2J\x1b[1;1Hready":    `\u001b[2J\u001b[1;1Hready`,
		"\x1b[8mhidden\x1b[0m":     "\\u001b[8mhidden\x1b[0m",
		"\x1b[31mred\x1b[0m":       "\x1b[31mred\x1b[0m",
		"\x1b[1;31m":               "\x1b[1;31m",
		"\x1b[31m1;x\x1b[0m":       "\x1b[31m1;x\x1b[0m", // an id that begins as colours do
		"\x1b[31":                  `\u001b[31`,
		"\u009b2J":                 `\u009b2J`,
		"a\rb":                     `a\u000db`,
		"a\bb\x00\x7f":             `a\u0008b\u0000\u007f`,
		"eel\u202ecod.exe\u2066x":  `eel\u202ecod.exe\u2066x`,
		"\u200f\u061c\u2028\ufeff": `\u200f\u061c\u2028\ufeff`,
		"\xff\xc3(":                "\ufffd\ufffd(",
	} {
		if got, rest := clean(text); got != want || rest != "" {
			t.Errorf("%q: %q and %q, want %q", text, got, rest, want)
		}
	}
}

// A letter that is cut in two by writes is whole, and no control slips through.
func TestCleanOverWrites(t *testing.T) {
	const text = "漢\u202eü\x1b[2J🎈\u009bx"
	want, _ := clean(text)
	for i := range text {
		var out strings.Builder
		w := &onFile{to: &out, screen: &screen{out: &out, width: func() int { return 80 }}}
		for _, part := range []string{text[:i], text[i:]} {
			if n, err := io.WriteString(w, part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if out.String() != want {
			t.Errorf("cut at %d: %q, want %q", i, out.String(), want)
		}
	}
	for i := range len(text) {
		var out strings.Builder
		w := &onFile{to: &out, screen: &screen{out: &out, width: func() int { return 80 }}}
		_, _ = io.WriteString(w, text[:i])
		_, _ = io.WriteString(w, text[i:])
		if strings.ContainsAny(out.String(), "\x1b\u009b\u202e") || strings.Contains(out.String(), "\ufffd") {
			t.Errorf("cut at byte %d: %q", i, out.String())
		}
	}
}

// What paint makes is left as it is.
func TestCleanLeavesPaint(t *testing.T) {
	p := paint{on: true}
	for _, text := range []string{p.bold("x"), p.faint("x"), p.good("x"), p.bad("x"), p.in("x", color.FgCyan), p.in("x", color.FgYellow)} {
		if got, _ := clean(text); got != text || !strings.Contains(text, "\x1b[") {
			t.Errorf("%q: %q", text, got)
		}
	}
}
