package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/fatih/color"
	"golang.org/x/term"
)

// isTerminal reports whether f is a terminal. A device such as /dev/null is not.
func isTerminal(f any) bool {
	file, ok := f.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// screen is a terminal, which shows [clean] text alone, with a status, such as a bar, on its last line: what begins
// with a carriage return and ends without a new line. Whatever else is printed
// takes the place of the status; a new line alone ends it.
type screen struct {
	width func() int

	mu     sync.Mutex
	out    io.Writer // where the status stands
	status bool
}

// onScreen returns what to print to in place of stdout and stderr, and what to
// call at the end.
func onScreen(stdout, stderr *os.File) (out, err io.Writer, end func()) {
	s := &screen{out: stderr, width: func() int { return cmp.Or(widthOf(stderr), 80) }}
	out, err = stdout, stderr
	if isTerminal(stdout) {
		out = &onFile{to: stdout, screen: s, file: stdout}
	}
	if isTerminal(stderr) {
		err = &onFile{to: stderr, screen: s, file: stderr}
	}
	return out, err, s.end
}

// end takes the status away.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

func (s *screen) clear() {
	if s.status {
		_, _ = io.WriteString(s.out, "\r\x1b[K")
		s.status = false
	}
}

func (s *screen) write(to io.Writer, rest *string, b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(b) > 0 && b[0] == '\r' && b[len(b)-1] != '\n' {
		text := string(bytes.TrimPrefix(b[bytes.LastIndexByte(b, '\r')+1:], []byte("\x1b[K")))
		text, _ = clean(text)
		_, err := fmt.Fprintf(s.out, "\r\x1b[K%s", fitting(text, s.width()-1)) // a wrapped line could not be removed
		s.status = text != ""
		return len(b), err
	}
	if string(b) == "\n" {
		s.status = false
	}
	s.clear()
	var text string
	text, *rest = clean(*rest + string(b))
	_, err := io.WriteString(to, text)
	return len(b), err
}

// onFile writes to a file on a screen.
type onFile struct {
	to     io.Writer
	screen *screen
	file   *os.File
	rest   string // half of a letter, with the screen's lock
}

func (f *onFile) Write(b []byte) (int, error) { return f.screen.write(f.to, &f.rest, b) }

// Fd is the file's, by which it is known as a terminal.
func (f *onFile) Fd() uintptr { return f.file.Fd() }

// plural is a number of things.
func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// more adds a number of things to a list; nothing of 0.
func more[N ~int | ~int64](n N, what string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d %s", n, what)
}

// errorText is the text of an error; "" of none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// printJSON prints v for people's eyes and machines alike.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// answer prints v as JSON, or in its place a text for people.
func (c *cli) answer(asJSON bool, v any, format string, args ...any) error {
	if asJSON {
		return printJSON(c.stdout, v)
	}
	_, err := fmt.Fprintf(c.stdout, format, args...)
	return err
}

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
	p.err = cmp.Or(p.err, printEither(p.w, p.json, v, text+"\n"))
}

// printEither prints v as one line of NDJSON, or in its place a text for people.
func printEither(w io.Writer, asJSON bool, v any, text string) error {
	if asJSON {
		return printLine(w, v)
	}
	_, err := io.WriteString(w, text)
	return err
}

// printLine prints v as one line of NDJSON.
func printLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
