package item

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// maxDepth is how deep maps and lists nest in DynamoDB.
const maxDepth = 32

// entry is one attribute of an indexed map.
type entry struct {
	sig uint32 // of the unescaped name
	off uint32 // of the name's opening quote in the map
}

// Parser parses attribute maps that stand inside a larger document, so that
// many of them share the memory of what is noted beside them. The zero Parser
// is ready to use. It is not safe for concurrent use; its Items are.
type Parser struct {
	b    []byte
	path []string // innermost first; filled while an error unwinds
	msg  string
}

// Parse validates the attribute map that starts at data[off] and returns the
// offset after it. The Item aliases data. An error is a [*SyntaxError] whose
// Offset counts from the start of data.
func (p *Parser) Parse(data []byte, off int) (it Item, end int, err error) {
	p.b, p.path, p.msg = data, p.path[:0], ""
	if off >= len(data) || data[off] != '{' {
		return Item{}, off, &SyntaxError{Offset: off, Msg: "an attribute map in braces is expected"}
	}
	end = p.attrs(off, 0)
	if p.msg != "" {
		var sb strings.Builder
		for i := len(p.path) - 1; i >= 0; i-- {
			sb.WriteString(p.path[i])
			if i > 0 {
				sb.WriteByte('.')
			}
		}
		return Item{}, end, &SyntaxError{Path: sb.String(), Offset: end, Msg: p.msg}
	}
	return Item{raw: data[off:end:end]}, end, nil
}

func (p *Parser) fail(i int, msg string) int {
	p.msg = msg
	return i
}

func (p *Parser) in(i int, name string) int {
	p.path = append(p.path, name)
	return i
}

// attrs checks the map whose brace stands at i and returns the offset after it.
func (p *Parser) attrs(i, depth int) int {
	b := p.b
	var seen map[string]bool
	i = jsonscan.Space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return p.fail(i, "attribute name expected")
		}
		j, _, msg := jsonscan.String(b, i)
		if msg != "" {
			return p.fail(j, msg)
		}
		name := string(jsonscan.AppendUnquoted(nil, b[i:j]))
		if seen[name] {
			return p.in(p.fail(i, "duplicate attribute name"), name)
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		seen[name] = true
		if i, msg = jsonscan.Colon(b, j); msg != "" {
			return p.in(p.fail(i, msg), name)
		}
		if i = p.value(i, depth); p.msg != "" {
			return p.in(i, name)
		}
		i = jsonscan.Space(b, i)
		switch {
		case i >= len(b):
			return p.fail(i, "unexpected end")
		case b[i] == '}':
			return i + 1
		case b[i] != ',':
			return p.fail(i, "missing comma")
		}
		i = jsonscan.Space(b, i+1)
	}
}

// value checks the {"tag":value} at i.
func (p *Parser) value(i, depth int) int {
	b := p.b
	if i >= len(b) || b[i] != '{' {
		return p.fail(i, "a typed value in braces is expected")
	}
	i = jsonscan.Space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return p.fail(i, "no type tag")
	}
	if i >= len(b) || b[i] != '"' {
		return p.fail(i, "type tag expected")
	}
	j, _, msg := jsonscan.String(b, i)
	if msg != "" {
		return p.fail(j, msg)
	}
	kind := kindOf(b[i+1 : j-1])
	if kind == Invalid {
		return p.fail(i, "unknown type tag "+strconv.Quote(string(b[i+1:j-1])))
	}
	if i, msg = jsonscan.Colon(b, j); msg != "" {
		return p.fail(i, msg)
	}
	if i = p.payload(kind, i, depth); p.msg != "" {
		return i
	}
	i = jsonscan.Space(b, i)
	if i < len(b) && b[i] == ',' {
		return p.fail(i, "more than one type tag")
	}
	if i >= len(b) || b[i] != '}' {
		return p.fail(i, "the typed value is not closed")
	}
	return i + 1
}

func (p *Parser) payload(kind Kind, i, depth int) int {
	b := p.b
	switch kind {
	case S, N, B:
		return p.scalar(kind, i)
	case BOOL, NULL:
		for _, lit := range []string{"true", "false"} {
			if len(b)-i >= len(lit) && string(b[i:i+len(lit)]) == lit {
				return i + len(lit)
			}
		}
		return p.fail(i, kind.String()+" must be true or false")
	case M:
		if i >= len(b) || b[i] != '{' {
			return p.fail(i, "M must hold an attribute map in braces")
		}
		if depth == maxDepth {
			return p.fail(i, "nested deeper than 32")
		}
		return p.attrs(i, depth+1)
	}
	if i >= len(b) || b[i] != '[' {
		return p.fail(i, kind.String()+" must hold an array")
	}
	if kind == L && depth == maxDepth {
		return p.fail(i, "nested deeper than 32")
	}
	i = jsonscan.Space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for n := 0; ; n++ {
		switch kind {
		case L:
			i = p.value(i, depth+1)
		case SS:
			i = p.scalar(S, i)
		case NS:
			i = p.scalar(N, i)
		case BS:
			i = p.scalar(B, i)
		}
		if p.msg != "" {
			return p.in(i, strconv.Itoa(n))
		}
		i = jsonscan.Space(b, i)
		switch {
		case i >= len(b):
			return p.fail(i, "unexpected end")
		case b[i] == ']':
			return i + 1
		case b[i] != ',':
			return p.fail(i, "missing comma")
		}
		i = jsonscan.Space(b, i+1)
	}
}

func (p *Parser) scalar(kind Kind, i int) int {
	b := p.b
	if i >= len(b) || b[i] != '"' {
		return p.fail(i, kind.String()+" must hold a string")
	}
	end, _, msg := jsonscan.String(b, i)
	if msg != "" {
		return p.fail(end, msg)
	}
	switch t := jsonscan.AppendUnquoted(nil, b[i:end]); kind {
	case N:
		if msg = checkNumber(t); msg != "" {
			return p.fail(i, msg)
		}
	case B:
		if _, err := base64.StdEncoding.Strict().DecodeString(string(t)); err != nil {
			return p.fail(i, "invalid base64")
		}
	}
	return end
}
