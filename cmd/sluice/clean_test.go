package main

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/fatih/color"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/audit"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// Names of items cannot control a terminal, in any output.
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

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"plain text ü 漢 🎈":      "plain text ü 漢 🎈",
		"\x1b[31mred\x1b[0m":    `\u001b[31mred\u001b[0m`,
		"a\nb\tc\rd":            `a\u000ab\u0009c\u000dd`,
		"\u009b2J\u202e\u2028x": `\u009b2J\u202e\u2028x`,
		"\xff\x1b":              "\ufffd" + `\u001b`,
	} {
		if got := plain(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := plainLines("a\x1b[1m\nb\tc\n"); got != `a\u001b[1m`+"\n"+`b\u0009c`+"\n" {
		t.Errorf("%q", got)
	}
}

// Text from outside never colours the output or begins a line, in any command. The
// output equals the output for a harmless text, with the text as plain shows it. So
// every colour is Sluice's.
func TestOthersTextIsPlainEverywhere(t *testing.T) {
	const harmless, evil = "HARMLESS", "\x1b[31mred\x1b[0m\nready\t\u202e\u009b2J"
	letter := func(text string) letters.Outline {
		fault := letters.Fault{Error: text, Details: []map[string]string{{text: text}}}
		return letters.Outline{
			ID: text, Kind: "record", Route: text, Table: text, EventName: text, EventID: text, StreamARN: text, ShardID: text, Sequence: text,
			Origin: text, Gap: text, First: fault, Last: fault,
		}
	}
	record := func(text string) *sluice.Record {
		rec := streamtest.Modify("t", map[string]any{"pk": text, "type": text, "a" + text: "1"}, map[string]any{"pk": text, "type": text, "a" + text: text, "b" + text: text})
		return &rec
	}
	c := func(out io.Writer) *cli {
		return &cli{stdout: out, stderr: out, lookup: func(string) (string, bool) { return "", false }}
	}
	type show func(out io.Writer, text string) error
	for what, f := range map[string]show{
		"tail": func(out io.Writer, text string) error {
			x := tail{paint: paint{on: true}, router: router.New()}
			_, err := io.WriteString(out, x.text(t.Context(), record(text), text))
			return err
		},
		"tail --values": func(out io.Writer, text string) error {
			x := tail{paint: paint{on: true}, router: router.New(), tailOptions: tailOptions{values: true}}
			_, err := io.WriteString(out, x.text(t.Context(), record(text), text))
			return err
		},
		"explain": func(out io.Writer, text string) error {
			x := explainer{cli: c(out)}
			_, err := io.WriteString(out, x.text(record(text), explanation{Event: sluice.EventName(text), Type: text, Error: text, Routes: []explainedRoute{
				{Route: "r", Takes: true, Error: text, Effects: []config.Effect{{Does: text + " x", Key: "k" + text, Detail: text}}},
				{Route: "s", Why: text},
			}}))
			return err
		},
		"audit": func(out io.Writer, text string) error {
			r := report{printer: printer{w: out}}
			r.drift(audit.Drift{Kind: audit.Missing, Ref: document.Ref{Index: text, ID: text}, Path: text, Err: errors.New(text)})
			r.drift(audit.Drift{Kind: audit.Failed, Table: text, Err: errors.New(text)})
			return r.err
		},
		"reindex": func(out io.Writer, text string) error {
			(&leftOut{w: out}).add(sluice.Item{}, errors.New(text))
			return nil
		},
		"dlq list": func(out io.Writer, text string) error {
			return c(out).printLetters([]letters.Outline{letter(text)}, text, "here")
		},
		"dlq show": func(out io.Writer, text string) error { return c(out).printLetter(letter(text), false) },
		"dlq redrive": func(out io.Writer, text string) error {
			_, err := io.WriteString(out, outcomeLine(deadletter.Outcome{ID: text, Result: deadletter.Waiting, Routes: []string{text}, Earlier: []string{text}})+"\n")
			return err
		},
		"completion": func(out io.Writer, text string) error {
			_, err := io.WriteString(out, proposed(letters.Outline{Route: text})+"\n")
			return err
		},
		"replay": func(out io.Writer, text string) error {
			r := replaying{c: c(out)}
			r.tell(record(text), nil, errors.New(text))
			return nil
		},
	} {
		var want, got strings.Builder
		if err := errors.Join(f(&want, harmless), f(&got, evil)); err != nil {
			t.Fatal(err)
		}
		if what == "dlq list" || what == "dlq redrive" { // they cut ids, so that the texts differ
			same := strings.Count(got.String(), "\n") == strings.Count(want.String(), "\n")
			if text, _ := clean(got.String()); !same || text != got.String() || strings.Contains(text, "\x1b") || !strings.Contains(text, "red") {
				t.Errorf("%s: %q", what, got.String())
			}
			continue
		}
		blanks := regexp.MustCompile(`[ -]+`) // of columns
		cutLines := strings.NewReplacer(`\u000a`, " ", `\u0009`, " ", `\n`, " ", `\t`, " ")
		one := func(s string) string { return blanks.ReplaceAllString(cutLines.Replace(s), " ") }
		if a, b := one(strings.ReplaceAll(want.String(), harmless, plain(evil))), one(got.String()); a != b || !strings.Contains(b, "red") {
			t.Errorf("%s:\n%q\nwant\n%q", what, b, a)
		}
	}
	if got := (plainError{errors.New("ours\nand " + evil)}).Error(); got != "ours\nand "+plainLines(evil) || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
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

// clean leaves Sluice's own colours.
func TestCleanLeavesPaint(t *testing.T) {
	p := paint{on: true}
	for _, text := range []string{p.bold("x"), p.faint("x"), p.good("x"), p.bad("x"), p.in("x", color.FgCyan), p.in("x", color.FgYellow)} {
		if got, _ := clean(text); got != text || !strings.Contains(text, "\x1b[") {
			t.Errorf("%q: %q", text, got)
		}
	}
}
