package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// source has the places of a file's values, and their text in the file.
type source struct {
	name   string
	dir    string
	at     map[string]place     // by path; missing fields have none
	from   map[string]string    // the file's text of values with variables, which may be secrets
	names  map[string]asWritten // by path; names with variables in them
	values map[string]string    // values of the variables, by name
	bad    map[string]bool      // paths with a mistake: checks that depend on them are skipped
	errs   Errors
}

// asWritten is a name as the file writes it, with its path.
type asWritten struct{ path, text string }

// place is a line and column, both from 1.
type place struct {
	line, column int
	// text is the offset from the place of a scalar to its text: 1 after a quote. It is
	// -1 if the scalar's lines differ from the value's.
	text int
}

// where returns the place of a path, or of its nearest parent.
func (d *source) where(path string) place {
	for {
		if p, ok := d.at[path]; ok || path == "" {
			return p
		}
		path = parent(path)
	}
}

// parent returns the path above: a.b of a.b.c, of a.b[0] and of a.b["c"].
func parent(path string) string {
	if strings.HasSuffix(path, `"]`) {
		return path[:max(strings.LastIndex(path, `["`), 0)]
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// join returns the path of a field, or of a key of a map.
func join(path, name string) string {
	switch {
	case name == "" || strings.ContainsAny(name, ".[]\" \t\r\n"):
		return fmt.Sprintf("%s[%q]", path, name)
	case path == "":
		return name
	}
	return path + "." + name
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// fault makes an error at a path.
func (d *source) fault(path, format string, args ...any) *Error {
	p := d.where(path)
	return &Error{File: d.name, Line: p.line, Column: p.column, Field: d.named(path), Problem: fmt.Sprintf(format, args...)}
}

// add notes a mistake, unless another noted mistake may cause it.
func (d *source) add(path, format string, args ...any) {
	for p := path; ; p = parent(p) {
		if d.bad[p] {
			return
		}
		if p == "" {
			break
		}
	}
	d.errs = append(d.errs, d.fault(path, format, args...))
}

// show quotes a value for an error as the file writes it, because a variable's value
// may be a secret.
func (d *source) show(path, value string) string {
	return fmt.Sprintf("%q", d.shown(path, value))
}

// shown returns a value as the file writes it.
func (d *source) shown(path, value string) string { return cmp.Or(d.from[path], value) }

// showName quotes the name at a path as the file writes it.
func (d *source) showName(path, name string) string {
	return fmt.Sprintf("%q", cmp.Or(d.names[path].text, name))
}

// named returns a path with its names as the file writes them.
func (d *source) named(path string) string {
	for put, w := range d.names {
		if rest, ok := strings.CutPrefix(path, put); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return w.path + rest
		}
	}
	return path
}

// detail returns the message of err. It hides the message if path's value has
// variables, because err may quote the value.
func (d *source) detail(path string, err error) string {
	if text, ok := d.from[path]; ok {
		return fmt.Sprintf("%q is wrong once its variables are put in; what is wrong is not shown, since they may be secrets", text)
	}
	return d.masked(err.Error())
}

// masked replaces values of variables in a message by ${NAME}. The rest of the message
// stays, such as a sink's report of an outage.
func (d *source) masked(message string) string {
	names := slices.SortedFunc(maps.Keys(d.values), func(a, b string) int {
		return cmp.Or(len(d.values[b])-len(d.values[a]), strings.Compare(a, b)) // longest first: a value may contain another
	})
	var pairs []string
	for _, name := range names {
		value := d.values[name]
		if len(value) <= 3 { // short values occur in messages by chance
			continue
		}
		quoted := strconv.Quote(value)
		for _, written := range []string{value, quoted[1 : len(quoted)-1], url.PathEscape(value), url.QueryEscape(value), url.User(value).String()} {
			pairs = append(pairs, written, "${"+name+"}")
		}
	}
	return strings.NewReplacer(pairs...).Replace(message)
}

// anyDetail is detail for an error that may quote any value below path.
func (d *source) anyDetail(path string, err error) string {
	for p, text := range d.from {
		if strings.HasPrefix(p, path+".") {
			return fmt.Sprintf("it is wrong once variables such as %q are put in; what is wrong is not shown, since they may be secrets", text)
		}
	}
	return d.masked(err.Error())
}

// hasBelow reports whether a mistake below path is noted.
func (d *source) hasBelow(path string) bool {
	return slices.ContainsFunc(d.errs, func(e *Error) bool { return strings.HasPrefix(e.Field, path+".") })
}

// fault makes an error about the field of c with that path.
func (c *Config) fault(field, format string, args ...any) *Error {
	return c.source().fault(field, format, args...)
}

// note notes err, unless it is nil, as a mistake at path.
func (c *Config) note(path string, err error) {
	if err != nil {
		c.doc.add(path, "%s", c.doc.detail(path, err))
	}
}

// file returns the path of a file that the configuration names.
func (c *Config) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.source().dir, name)
}

// source returns the file's source; an empty one for a Config that was not parsed.
func (c *Config) source() *source {
	if c.doc == nil {
		return &source{}
	}
	return c.doc
}
