package config

import (
	"fmt"
	"os"
	"path/filepath"
)

// Files lists the files that the configuration at path names, in its own words. A
// package of a Lambda function must hold them beside the configuration. Files checks
// nothing else. Only variables in names of files must be set.
func Files(path string, env func(string) (string, bool)) ([]string, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, Errors{{File: path, Problem: reason(err), err: err}}
	}
	root, err := read(path, text)
	if err != nil {
		return nil, err
	}
	var files []string
	var errs Errors
	add := func(field string, n *node) {
		if n == nil || !n.scalar() {
			return // Load refuses it
		}
		fail := func(problem string) {
			errs = append(errs, &Error{File: path, Line: n.line, Column: n.column, Field: field, Problem: problem})
		}
		name, _, err := expand(n.text, env)
		switch {
		case err != nil:
			fail(err.Error())
		case name == "":
		default:
			if !filepath.IsAbs(name) {
				name = filepath.Clean(name)
				if info, err := os.Stat(filepath.Join(filepath.Dir(path), name)); err != nil {
					fail(fmt.Sprintf("%q: %s", n.text, reason(err)))
				} else if info.IsDir() {
					fail(fmt.Sprintf("%q is a directory; want a file", n.text))
				}
			}
			files = append(files, name)
		}
	}
	for _, sink := range root.get("sinks").entries() {
		search, at := sink.value.get("opensearch"), join("sinks", sink.key.text)+".opensearch"
		add(at+".caFile", search.get("caFile"))
		if indices := search.get("indices"); indices != nil {
			for i, index := range indices.items {
				add(element(at+".indices", i)+".file", index.get("file"))
			}
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return files, nil
}

// get returns the value of a field; nil if it is missing.
func (n *node) get(name string) *node {
	for _, f := range n.entries() {
		if f.key.text == name {
			return f.value
		}
	}
	return nil
}

func (n *node) entries() []pair {
	if n == nil {
		return nil
	}
	return n.fields
}
