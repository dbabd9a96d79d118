package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// colour is what paint and the shells' own messages use; nothing else that
// begins with an escape reaches a terminal.
var colour = regexp.MustCompile(`^\x1b\[(?:0|1|2|22|3[1-6]|39)(?:;(?:0|1|2|22|3[1-6]|39))*m`)

// plain is what others wrote, such as an item's name or value, an id or an error, as
// it may stand within a line: colours, lines and tabs are shown as \u001b, too. It is
// for every text that a command formats, whether for a terminal or not; clean alone
// could not tell others' colours and lines from ours.
func plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || moves(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plainLines is plain for a text whose lines are ours.
func plainLines(text string) string {
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = plain(all[i])
	}
	return strings.Join(all, "\n")
}

// plainError shows an error in plain lines.
type plainError struct{ error }

func (e plainError) Error() string { return plainLines(e.error.Error()) }
func (e plainError) Unwrap() error { return e.error }

// clean makes text safe for a terminal, whatever its source. Other characters than
// letters, newlines and tabs, such as in an item's name, could move the cursor,
// change earlier output, or reverse the reading order. clean shows them as \u001b,
// like JSON. rest is an incomplete end, which the next write may complete.
func clean(text string) (cleaned, rest string) {
	var b strings.Builder
	for len(text) > 0 {
		if text[0] == '\x1b' {
			if c := colour.FindString(text); c != "" {
				b.WriteString(c)
				text = text[len(c):]
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1 && !utf8.FullRuneInString(text):
			return b.String(), text
		case moves(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String(), ""
}

// moves reports whether a terminal does with r something else than to show it: C0
// and C1 controls, and controls of the direction of text (Unicode's Bidi_Control)
// or begin a line.
func moves(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0,
		r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
		r == 0x2028, r == 0x2029, r == 0xfeff:
		return true
	}
	return false
}
