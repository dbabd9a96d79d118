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

// source is what is known of a file besides its values: where they stand.
type source struct {
	name   string
	dir    string
	at     map[string]place     // by path; what is missing is not there
	from   map[string]string    // what stands in the file for a value with variables in it, which may be a secret
	names  map[string]asWritten // by path; names with variables in them
	values map[string]string    // of variables that were put in, by name
	bad    map[string]bool      // paths that were not understood: what hangs on them is not known
	errs   Errors
}

// asWritten is a name as it stands in the file, and the path that it makes.
type asWritten struct{ path, text string }

// place is where something begins; both count from 1.
type place struct {
	line, column int
	// text is how many columns behind its beginning the text of a scalar
	// begins: 1 for its quote. -1 where its lines are not those of the value.
	text int
}

// where returns the place of a path, or of what is nearest above it.
func (d *source) where(path string) place {
	for {
		if p, ok := d.at[path]; ok || path == "" {
			return p
		}
		path = parent(path)
	}
}

// parent is the path of what holds path: a.b of a.b.c, of a.b[0] and of a.b["c"].
func parent(path string) string {
	if strings.HasSuffix(path, `"]`) {
		return path[:max(strings.LastIndex(path, `["`), 0)]
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// join is the path of a field, or of a key of a map.
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

// add notes a mistake, unless it may come of another that is known.
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

// show quotes a value of the file for an error: as it stands there, since what a
// variable brings may be a secret.
func (d *source) show(path, value string) string {
	if text, ok := d.from[path]; ok {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q", value)
}

// shown is a value without quotes, as it stands in the file.
func (d *source) shown(path, value string) string { return cmp.Or(d.from[path], value) }

// showName quotes the name at a path, as it stands in the file.
func (d *source) showName(path, name string) string {
	return fmt.Sprintf("%q", cmp.Or(d.names[path].text, name))
}

// named is a path with its names as they stand in the file.
func (d *source) named(path string) string {
	for put, w := range d.names {
		if rest, ok := strings.CutPrefix(path, put); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return w.path + rest
		}
	}
	return path
}

// detail is the message of err, which may quote the value at path.
func (d *source) detail(path string, err error) string {
	if text, ok := d.from[path]; ok {
		return fmt.Sprintf("%q is wrong once its variables are put in; what is wrong is not shown, since they may be secrets", text)
	}
	return d.masked(err.Error())
}

// masked is a message with ${NAME} for what variables brought: it may be about
// more than one value, and an outage that a sink tells of is to be seen.
func (d *source) masked(message string) string {
	names := slices.SortedFunc(maps.Keys(d.values), func(a, b string) int {
		return cmp.Or(len(d.values[b])-len(d.values[a]), strings.Compare(a, b)) // one may be within another
	})
	var pairs []string
	for _, name := range names {
		value := d.values[name]
		if len(value) <= 3 { // in many a message by chance
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

// hasBelow reports whether a mistake is noted at something within path.
func (d *source) hasBelow(path string) bool {
	return slices.ContainsFunc(d.errs, func(e *Error) bool { return strings.HasPrefix(e.Field, path+".") })
}

// fault makes an error about a field of c, whose path is that of Error.Field.
func (c *Config) fault(field, format string, args ...any) *Error {
	return c.source().fault(field, format, args...)
}

// detail is the message of err for an error about a field; it is left out where
// the value came of the environment, since it may quote a secret.
func (c *Config) detail(field string, err error) string { return c.source().detail(field, err) }

// note notes err, unless it is nil, as a mistake at path.
func (c *Config) note(path string, err error) {
	if err != nil {
		c.doc.add(path, "%s", c.doc.detail(path, err))
	}
}

// file is the path of a file that the configuration names.
func (c *Config) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.source().dir, name)
}

// source returns what is known of the file; a Config that was not read has none.
func (c *Config) source() *source {
	if c.doc == nil {
		return &source{}
	}
	return c.doc
}
