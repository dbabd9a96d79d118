package main

import (
	"cmp"
	"encoding/json"
	"io"

	"github.com/fatih/color"
)

// paint colours words for a terminal; for all else, and with NO_COLOR, it leaves
// them as they are.
type paint struct{ on bool }

func (c *cli) paint() paint {
	return paint{on: isTerminal(c.stdout) && c.env("NO_COLOR") == "" && c.env("TERM") != "dumb"}
}

func (p paint) in(text string, attributes ...color.Attribute) string {
	if !p.on || text == "" {
		return text
	}
	paint := color.New(attributes...)
	paint.EnableColor() // whatever the process' standard output is
	return paint.Sprint(text)
}

func (p paint) bold(text string) string  { return p.in(text, color.Bold) }
func (p paint) faint(text string) string { return p.in(text, color.Faint) }
func (p paint) good(text string) string  { return p.in(text, color.FgGreen) }
func (p paint) bad(text string) string   { return p.in(text, color.FgRed) }

// printer prints findings one by one: lines of JSON, or of text. err is the first
// error.
type printer struct {
	w    io.Writer
	json bool
	err  error
}

func (p *printer) print(text string, v any) {
	var err error
	if p.json {
		err = printLine(p.w, v)
	} else {
		_, err = io.WriteString(p.w, text+"\n")
	}
	p.err = cmp.Or(p.err, err)
}

// printLine prints v as one line of NDJSON.
func printLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
