// Package keypattern finds the type of a record in the value of a key, by a pattern.
package keypattern

import (
	"bytes"
	"fmt"
	"strings"
)

// Pattern finds the type in a key's value.
type Pattern struct {
	segments []segment
	open     bool // `**` ends the pattern
}

// segment is literal text with wildcards between: the text before, then the text
// after each wildcard.
type segment struct {
	before []byte
	after  [][]byte
	typ    int // index of the type's wildcard; -1 is none
}

// Parse parses a pattern. Its error has the byte offset of the mistake.
func Parse(s string) (p Pattern, err error) {
	off := 0
	defer func() {
		if err != nil {
			err = fmt.Errorf("key pattern %q: at byte %d: %w", s, off, err)
		}
	}()
	typed := false
	for i, text := range strings.Split(s, "#") {
		if i > 0 {
			off++ // the '#'
		}
		if p.open {
			off--
			return p, fmt.Errorf("** is not the last segment")
		}
		if text == "**" {
			p.open = true
			off += len(text)
			continue
		}
		seg := segment{typ: -1}
		literal := &seg.before
		for len(text) > 0 {
			n := 1
			wild := text[0] == '*'
			if strings.HasPrefix(text, "{type}") {
				n, wild = len("{type}"), true
				if typed {
					return p, fmt.Errorf("{type} is there twice")
				}
				typed = true
				seg.typ = len(seg.after)
			} else if text[0] == '{' || text[0] == '}' {
				return p, fmt.Errorf("%q; want {type}", text[0])
			}
			switch {
			case !wild:
				*literal = append(*literal, text[:n]...)
			case len(seg.after) > 0 && len(*literal) == 0:
				return p, fmt.Errorf("two wildcards side by side")
			default:
				seg.after = append(seg.after, nil)
				literal = &seg.after[len(seg.after)-1]
			}
			text = text[n:]
			off += n
		}
		p.segments = append(p.segments, seg)
	}
	if !typed {
		return p, fmt.Errorf("no {type}")
	}
	return p, nil
}

// Find returns the range of the type in key; 0, 0 when key does not match.
func (p *Pattern) Find(key []byte) (from, to int) {
	off := 0
	for i := range p.segments {
		if off > len(key) {
			return 0, 0 // key has fewer segments
		}
		end := len(key)
		if n := bytes.IndexByte(key[off:], '#'); n >= 0 {
			end = off + n
		}
		f, t, ok := p.segments[i].match(key[off:end])
		if !ok {
			return 0, 0
		}
		if p.segments[i].typ >= 0 {
			from, to = off+f, off+t
		}
		off = end + 1
	}
	// off is one past the separator that follows the last segment, if any.
	if more := off <= len(key); more != p.open {
		return 0, 0
	}
	return from, to
}

// match returns the range of the type in text. The text after the last wildcard is
// a suffix. Every other wildcard takes as little as it can, which finds a match if
// one exists.
func (s *segment) match(text []byte) (from, to int, ok bool) {
	if !bytes.HasPrefix(text, s.before) {
		return 0, 0, false
	}
	off := len(s.before)
	for i, literal := range s.after {
		least := 0
		if i == s.typ {
			least = 1
		}
		if len(text)-off < least+len(literal) {
			return 0, 0, false
		}
		end := len(text) - len(literal)
		if i == len(s.after)-1 {
			if !bytes.HasSuffix(text, literal) {
				return 0, 0, false
			}
		} else {
			n := bytes.Index(text[off+least:], literal)
			if n < 0 {
				return 0, 0, false
			}
			end = off + least + n
		}
		if i == s.typ {
			from, to = off, end
		}
		off = end + len(literal)
	}
	return from, to, off == len(text)
}
