package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// substitute replaces variables in the scalars of a document, and in the names of
// tables. It runs after the parser, so a variable's value cannot change the document's
// structure.
func (d *decoder) substitute(path string, n *node) {
	switch n.kind {
	case aText:
		if !strings.Contains(n.text, "$") {
			return
		}
		value, used, err := expand(n.text, d.env)
		if err != nil {
			d.addAt(n, path, "%v", err)
			d.bad[path] = true
			return
		}
		if used {
			d.from[path] = n.text
			n.place.text = -1
			n.quoted = false // the value may be a number
		}
		n.text = value
	case aMapping:
		for _, f := range n.fields {
			if ofTables(path) && strings.Contains(f.key.text, "$") {
				name, used, err := expand(f.key.text, d.env)
				if err != nil {
					d.addAt(f.key, path, "%v", err)
					d.bad[path] = true
					continue
				}
				if used {
					d.names[join(path, name)] = asWritten{path: join(path, f.key.text), text: f.key.text}
				}
				f.key.text = name
			}
			d.substitute(join(path, f.key.text), f.value)
		}
	case aList:
		for i, one := range n.items {
			d.substitute(element(path, i), one)
		}
	}
}

// ofTables reports whether the keys of a mapping are names of tables.
func ofTables(path string) bool {
	return strings.HasSuffix(path, ".tables") || strings.HasSuffix(path, ".dynamodb.budget")
}

// expand replaces ${NAME} and ${NAME:-default}. used reports whether the text has one.
// Its errors quote no value.
func expand(s string, env func(string) (string, bool)) (out string, used bool, err error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String(), used, nil
		}
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			s = after[1:]
		case strings.HasPrefix(after, "{"):
			inner, rest, closed := strings.Cut(after[1:], "}")
			name, fallback, has := strings.Cut(inner, ":-")
			switch {
			case !closed:
				return "", used, errors.New("${ has no }; write $$ for a dollar sign, and put the value in quotes if a default has a # behind a space")
			case !goodVariable.MatchString(name):
				return "", used, fmt.Errorf("${%s} names no variable; want ${NAME} or ${NAME:-default}, or $${ for the characters", inner)
			case strings.Contains(fallback, "${"):
				return "", used, fmt.Errorf("${%s has a variable within its default; want text", inner)
			}
			value, ok := "", false
			if env != nil {
				value, ok = env(name)
			}
			if !ok && !has {
				return "", used, fmt.Errorf("the variable %s is not set; set it, or give a default: ${%s:-…}", name, name)
			}
			if !utf8.ValidString(value) {
				return "", used, fmt.Errorf("the variable %s is no UTF-8", name)
			}
			if value == "" && has {
				value = fallback
			}
			b.WriteString(value)
			s, used = rest, true
		default: // a single dollar sign
			b.WriteByte('$')
			s = after
		}
	}
}

var goodVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
