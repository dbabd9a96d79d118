package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// value is one JSON value of the input, or what should have been one.
type value struct {
	line int   // at which it begins, from 1
	end  int64 // offset behind it
	text []byte
	err  error // why it is invalid
}

// mostValue bounds a value: a Lambda event has 6 MB at most.
const mostValue = 64 << 20

// splitter reads values.
type splitter struct {
	in   *bufio.Reader
	line int
	off  int64
	next []byte // a line that was read ahead
	last error  // behind next
}

func newSplitter(in io.Reader) *splitter { return &splitter{in: bufio.NewReaderSize(in, 64<<10)} }

// skip leaves out the beginning of the input.
func (s *splitter) skip(n int64) error {
	for s.off < n {
		text, err := s.read()
		s.off += int64(len(text))
		if len(text) > 0 {
			s.line++
		}
		if err != nil && s.off < n {
			return fmt.Errorf("the input ends at byte %d, before the offset %d: is it another one?", s.off, n)
		}
	}
	if s.off != n {
		return fmt.Errorf("offset %d is in the middle of line %d: use an offset that a replay of this input has printed", n, s.line)
	}
	return nil
}

// read returns the next line with its end.
func (s *splitter) read() ([]byte, error) {
	if s.next != nil || s.last != nil {
		text, err := s.next, s.last
		s.next, s.last = nil, nil
		return text, err
	}
	var text []byte
	for {
		part, err := s.in.ReadSlice('\n')
		text = append(text, part...)
		if len(text) > mostValue {
			return nil, fmt.Errorf("line %d has more than %d bytes: it is no record", s.line+1, mostValue)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

// values returns the next values, usually one. io.EOF is the end; another error is
// one of reading.
func (s *splitter) values() ([]value, error) {
	for {
		text, err := s.read()
		if err != nil && (len(text) == 0 || !errors.Is(err, io.EOF)) {
			return nil, err // a partial line is not a value
		}
		s.line++
		first := s.line
		s.off += int64(len(text))
		trimmed := bytes.TrimSpace(text)
		if len(trimmed) == 0 {
			if err != nil {
				return nil, err
			}
			continue
		}
		if json.Valid(trimmed) {
			return []value{{line: first, end: s.off, text: trimmed}}, nil
		}
		lines := [][]byte{text}
		size := len(text)
		if c := text[0]; c == '{' || c == '[' {
			for err == nil {
				var more []byte
				more, err = s.read()
				if len(more) == 0 || more[0] == '{' || more[0] == '[' || size+len(more) > mostValue || err != nil && !errors.Is(err, io.EOF) {
					s.next, s.last = more, err
					break
				}
				s.line++
				s.off += int64(len(more))
				size += len(more)
				lines = append(lines, more)
			}
		}
		return apart(lines, first, s.off), nil
	}
}

// apart makes values of lines: one of all, if that is one; several of a line; and
// else each line is on its own.
func apart(lines [][]byte, first int, end int64) (all []value) {
	if text := bytes.TrimSpace(bytes.Join(lines, nil)); json.Valid(text) {
		return []value{{line: first, end: end, text: text}}
	}
	for _, l := range lines {
		end -= int64(len(l))
	}
	for i, l := range lines {
		end += int64(len(l))
		text := bytes.TrimSpace(l)
		if len(text) == 0 {
			continue
		}
		var several []value
		dec := json.NewDecoder(bytes.NewReader(text))
		for {
			var raw json.RawMessage
			err := dec.Decode(&raw)
			if err == nil {
				several = append(several, value{line: first + i, end: end, text: raw})
				continue
			}
			if !errors.Is(err, io.EOF) {
				if bytes.HasPrefix(text, []byte("\uFEFF")) {
					err = errors.New("a byte order mark (the bytes EF BB BF) stands before it; save the file as UTF-8 without one")
				}
				several = []value{{line: first + i, end: end, text: text, err: fmt.Errorf("no JSON, or not all of it: %w", err)}}
			}
			break
		}
		all = append(all, several...)
	}
	return all
}
