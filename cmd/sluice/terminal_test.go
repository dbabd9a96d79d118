package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func TestNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) || isTerminal(&strings.Builder{}) || isTerminal(nil) {
		t.Error("a device, or what is no file, is a terminal")
	}
}

// Nothing is glued to a status, and none is wider than the terminal.
func TestScreen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		writes []string
		want   string
	}{
		{"a line takes its place", []string{"\r3 records", "a.ndjson: no\n"}, "\r\x1b[K3 records\r\x1b[Ka.ndjson: no\n"},
		{"one after the other", []string{"\rone", "\rtwo", "line\n", "more\n"}, "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[Kline\nmore\n"},
		{"cleared with blanks", []string{"\rone", "\r   \r", "line\n"}, "\r\x1b[Kone\r\x1b[Kline\n"},
		{"ended", []string{"\rone", "\n", "line\n"}, "\r\x1b[Kone\nline\n"},
		{"narrow", []string{"\r\x1b[K0123456789abcdef"}, "\r\x1b[K012345678\r\x1b[K"},
		{"wide letters", []string{"\r日本語日本語"}, "\r\x1b[K日本語日\r\x1b[K"},
		{"marks and joined letters", []string{"\re\u0301\u200d123456789"}, "\r\x1b[Ke\u0301\u200d12345678\r\x1b[K"},
		{"at the end", []string{"\rone"}, "\r\x1b[Kone\r\x1b[K"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			s := &screen{out: &out, width: func() int { return 10 }}
			for _, text := range tt.writes {
				if n, err := io.WriteString(&onFile{to: &out, screen: s}, text); err != nil || n != len(text) {
					t.Fatal(n, err)
				}
			}
			s.end()
			if out.String() != tt.want {
				t.Errorf("%q\nwant %q", out.String(), tt.want)
			}
		})
	}
}

// A bar is on the status line. Other output is on lines of its own.
func TestBarsOnScreen(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out, width: func() int { return 40 }}
	w := &onFile{to: &out, screen: s}
	b := newBar(w, 0)
	b.Describe(strings.Repeat("long ", 20))
	_ = b.Set64(7)
	_, _ = io.WriteString(w, "a warning\n")
	_ = b.Finish() // else it may draw itself meanwhile
	for line := range strings.SplitSeq(out.String(), "\r\x1b[K") {
		if n := len([]rune(line)); n >= 40 || strings.Contains(line, "warning") && line != "a warning\n" {
			t.Errorf("%q in\n%q", line, out.String())
		}
	}
	if !strings.Contains(out.String(), "long") {
		t.Errorf("there is no bar: %q", out.String())
	}

	out.Reset()
	bar := show{out: w, bar: newBar(w, 0)}
	bar.begun = time.Now()
	_, _ = io.WriteString(w, "\rhalf")
	bar.end(nil)
	if out.String() != "\r\x1b[Khalf\n" {
		t.Errorf("%q", out.String())
	}
}
