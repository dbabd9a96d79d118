package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxText    = 1 << 20 // bytes of a file
	maxEntries = 10_000  // values of a file
	maxDepth   = 32      // nesting of lists and mappings
)

// node is a value in a file.
type node struct {
	place
	kind   kind
	text   string // text of a scalar
	quoted bool   // a quoted scalar is always text
	fields []pair
	items  []*node
}

type pair struct {
	key   *node
	value *node
}

type kind uint8

const (
	aNull kind = iota
	aText
	aNumber
	aBoolean
	aMapping
	aList
)

// what names the kind of a value, for errors.
func (n *node) what() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a mapping", "a list"}[n.kind]
}

func (n *node) scalar() bool { return n.kind == aText || n.kind == aNumber || n.kind == aBoolean }

// read makes nodes of a document. Its error is an *Error.
func read(name string, data []byte) (_ *node, err error) {
	fail := func(line, column int, format string, args ...any) (*node, error) {
		return nil, &Error{File: name, Line: line, Column: column, Problem: fmt.Sprintf(format, args...)}
	}
	if len(data) > maxText {
		return fail(1, 1, "the file has %d bytes, more than the %d that are read: is it a configuration?", len(data), maxText)
	}
	if problem := encoding(data); problem != "" {
		return fail(1, 1, "%s", problem)
	}
	// Turn every line break of YAML into \n: values have only \n anyway.
	source := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(data), "\uFEFF"))
	if at := badChar(source); at >= 0 {
		line, column := position(source, at)
		if strings.HasPrefix(source[at:], "\uFEFF") {
			return fail(line, column, "a byte order mark (the bytes EF BB BF), which YAML takes only once, at the beginning of the file: delete it")
		}
		return fail(line, column, "a character that YAML does not take: byte 0x%02x; save the file as UTF-8", source[at])
	}
	if line, column := tooDeep(source); line > 0 {
		return fail(line, column, "lists and mappings stand in each other more than %d deep", maxDepth)
	}
	defer func() { // panics of the library become an error: users cannot debug them
		if r := recover(); r != nil {
			_, err = fail(1, 1, "the file cannot be read as YAML (%v)", r)
		}
	}()
	if n := entries(source); n > maxEntries {
		return fail(1, 1, "the file has some %d values, more than the %d that are read: is it a configuration?", n, maxEntries)
	}
	tokens := lexer.Tokenize(source)
	if i := slices.IndexFunc(tokens, isDirective); i >= 0 {
		return fail(tokens[i].Position.Line, tokens[i].Position.Column, "directives (%%) are not taken: leave the line out")
	}
	second := secondDocument(tokens)
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(name, source, err)
	}
	if second != nil {
		return fail(second.line, second.column, "a second document begins here (after --- or ...); a configuration is one document")
	}
	docs := slices.DeleteFunc(f.Docs, func(doc *ast.DocumentNode) bool { return doc.Body == nil })
	if len(docs) != 1 {
		return fail(1, 1, "the file is empty; `sluice init` writes a first one")
	}
	return newNode(name, docs[0].Body, 0)
}

// entries estimates the number of values. It counts commas, and lines that are not
// empty and not comments. The library's time grows with the square of a list.
func entries(s string) int {
	n := strings.Count(s, ",")
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			n++
		}
	}
	return n
}

func isDirective(t *token.Token) bool {
	return t.Type == token.DirectiveType && t.Position.Column == 1
}

// secondDocument returns the place of a second document that is not empty, or nil. The
// library drops a document after an empty one.
func secondDocument(tokens token.Tokens) *place {
	const none, first, between = 0, 1, 2
	state := none
	for _, t := range tokens {
		switch t.Type {
		case token.CommentType:
		case token.DocumentHeaderType, token.DocumentEndType:
			if state == first {
				state = between
			}
		default:
			if state == between && t.Position != nil {
				return &place{line: max(t.Position.Line, 1), column: max(t.Position.Column, 1)}
			}
			state = first
		}
	}
	return nil
}

// encoding describes the mistake of a file in another encoding than UTF-8.
func encoding(data []byte) string {
	if len(data) >= 2 && (data[0] == 0xFF && data[1] == 0xFE || data[0] == 0xFE && data[1] == 0xFF || data[0] == 0 || data[1] == 0) {
		return "the file is UTF-16 or UTF-32; save it as UTF-8"
	}
	return ""
}

// badChar returns the index in s of a byte that is not UTF-8, or of a control character
// that YAML refuses; else -1.
func badChar(s string) int {
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"),
			r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7F, r == '\uFEFF':
			return i
		}
	}
	return -1
}

// position returns the line and column of a byte, from 1.
func position(s string, at int) (line, column int) {
	before := s[:at]
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// tooDeep finds too many open brackets, or dashes in one line, before the library
// recurses into them. It also counts characters in quotes and comments: no
// configuration has so many open brackets there.
func tooDeep(s string) (line, column int) {
	const most = 4 * maxDepth
	open, marks := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		case '-', '?', ':', '&', '!', '*', '|', '>':
			if i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == '\t') || s[i] == '&' || s[i] == '!' || s[i] == '*' {
				marks++
			}
		case '\n':
			marks = 0
		}
		if open > most || marks > most {
			return position(s, i)
		}
	}
	return 0, 0
}

// unquotedStar matches a pattern such as *#REMOVE without quotes: YAML reads an alias.
var unquotedStar = regexp.MustCompile(`[:\[,-]\s*\*`)

// syntaxError makes an error of the library's, with the place.
func syntaxError(name, source string, err error) error {
	e := &Error{File: name, Line: 1, Column: 1}
	var at interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &at) {
		e.Problem = "no YAML: " + err.Error()
		return e
	}
	e.Problem = "no YAML: " + at.GetMessage()
	if tk := at.GetToken(); tk != nil && tk.Position != nil {
		e.Line, e.Column = max(tk.Position.Line, 1), max(tk.Position.Column, 1)
	}
	lines := strings.Split(source, "\n")
	if e.Line > len(lines) {
		e.Line, e.Column = len(lines), 1
	}
	switch line := lines[e.Line-1]; {
	case strings.Contains(line[:len(line)-len(strings.TrimLeft(line, " \t"))], "\t"):
		e.Problem = "a tab in the indentation, for which YAML takes spaces only"
	case strings.Contains(line, "${"):
		e.Problem += "; within [ ] and { } a variable stands in quotes: \"${NAME}\""
	case unquotedStar.MatchString(line), e.Line > 1 && unquotedStar.MatchString(lines[e.Line-2]):
		e.Problem += "; a pattern that begins with * stands in quotes: '*#*'"
	case strings.Contains(e.Problem, "not allowed in this context"):
		e.Problem += "; is the line, or the one before it, indented as far as its neighbours?"
	}
	return e
}

// newNode makes a node of the library's. It returns an *Error for YAML that a
// configuration must not have.
func newNode(name string, in ast.Node, depth int) (*node, error) {
	n := &node{}
	if tk := in.GetToken(); tk != nil && tk.Position != nil {
		n.place = place{line: max(tk.Position.Line, 1), column: max(tk.Position.Column, 1)}
	}
	fail := func(format string, args ...any) (*node, error) {
		return nil, &Error{File: name, Line: n.line, Column: n.column, Problem: fmt.Sprintf(format, args...)}
	}
	if depth > maxDepth {
		return fail("lists and mappings stand in each other more than %d deep", maxDepth)
	}
	switch in := in.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		n.kind, n.text = aText, in.Value
		if in.Token.Type == token.SingleQuoteType || in.Token.Type == token.DoubleQuoteType {
			n.quoted, n.place.text = true, 1
		}
		if strings.ContainsAny(in.Token.Origin, "\\\n") && strings.ContainsAny(strings.TrimSpace(in.Token.Origin), "\\\n") {
			n.place.text = -1
		}
	case *ast.LiteralNode:
		n.kind, n.text, n.quoted, n.place.text = aText, in.Value.Value, true, -1
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = aNumber, in.GetToken().Value
	case *ast.BoolNode:
		n.kind, n.text = aBoolean, in.GetToken().Value
	case *ast.SequenceNode:
		n.kind = aList
		for _, v := range in.Values {
			one, err := newNode(name, v, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, one)
		}
	case *ast.MappingNode:
		return newMapping(name, n, in.Values, depth)
	case *ast.MappingValueNode:
		return newMapping(name, n, []*ast.MappingValueNode{in}, depth)
	case *ast.AnchorNode, *ast.AliasNode:
		return fail("anchors (&) and aliases (*) are not taken: write out what is meant, or put it in quotes if it is text")
	case *ast.TagNode:
		return fail("tags (!) are not taken: put the value in quotes if it is text")
	case *ast.MergeKeyNode:
		return fail("merging (<<) is not taken: write out what is meant")
	case *ast.MappingKeyNode:
		return fail("names behind a question mark are not taken: write name: value")
	default:
		return fail("%v is not taken in a configuration", in.Type())
	}
	return n, nil
}

func newMapping(name string, n *node, values []*ast.MappingValueNode, depth int) (*node, error) {
	n.kind = aMapping
	for i, kv := range values {
		key, err := newNode(name, kv.Key, depth+1)
		if err == nil && !key.scalar() {
			err = &Error{File: name, Line: key.line, Column: key.column, Problem: "a key is a plain name"}
		}
		if err != nil {
			return nil, err
		}
		value, err := newNode(name, kv.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if value.kind == aNull {
			value.place = key.place
		}
		if i == 0 && (n.line > key.line || n.line == key.line && n.column > key.column) {
			n.place = key.place // the library's place is that of the colon
		}
		n.fields = append(n.fields, pair{key, value})
	}
	return n, nil
}
