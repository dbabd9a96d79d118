package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
)

// Load reads a file, replaces its variables, and checks everything that needs no call
// to a service. Its error is an [Errors].
//
// ${NAME} becomes the variable's value, ${NAME:-default} the default if the variable is
// empty or not set. A variable that is not set and has no default is an error. $$ is a
// dollar sign. Load replaces variables in values, after parsing: a variable cannot
// change the structure of the file. A value that is only a variable can be a number, a
// duration, true or false; if it is empty, the field counts as left out. Errors show
// the text of the file, never a variable's value.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, Errors{{File: path, Problem: reason(err), err: err}}
	}
	return Parse(path, filepath.Dir(path), text, env)
}

// readFile reads a file up to a little over the size limit.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("it is a directory; want a file")
	}
	return io.ReadAll(io.LimitReader(f, maxText+1))
}

// reason is the message of err without the path, which the error names already.
func reason(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file"
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}

// Parse is Load for text. Errors call it name. Files that the text names are relative
// to dir.
func Parse(name, dir string, text []byte, env func(string) (string, bool)) (*Config, error) {
	n, err := read(name, text)
	if err != nil {
		return nil, Errors{err.(*Error)}
	}
	d := &decoder{source: &source{
		name: name, dir: dir, at: map[string]place{}, from: map[string]string{}, names: map[string]asWritten{}, values: map[string]string{}, bad: map[string]bool{},
	}}
	d.env = func(name string) (string, bool) {
		if env == nil {
			return "", false
		}
		value, ok := env(name)
		d.values[name] = value
		return value, ok
	}
	c := &Config{doc: d.source}
	if n.kind != aMapping {
		return nil, Errors{{File: name, Line: n.line, Column: n.column, Problem: fmt.Sprintf("the file is %s; want a mapping with source and routes", n.what())}}
	}
	d.substitute("", n)
	d.at[""] = n.place
	d.object(n, "", reflect.ValueOf(c).Elem())
	c.validate()
	if len(d.errs) > 0 {
		return nil, d.errs.sorted()
	}
	return c, nil
}
