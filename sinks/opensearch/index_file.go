package opensearch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// file is one of the files of Apply.
type file struct {
	path string // as messages call it, such as indices/products.json
	name string // products
	body map[string]any
}

// readFiles reads the JSON files of a folder, sorted; none when it is not there.
func readFiles(fsys fs.FS, o IndexOptions, folder string, allowed ...string) ([]file, error) {
	entries, err := fs.ReadDir(fsys, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []file
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || e.IsDir() {
			return nil, fmt.Errorf("%s is no JSON file: want names such as products.json", path.Join(folder, e.Name()))
		}
		f, err := readFile(fsys, o, path.Join(folder, e.Name()), name, allowed...)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func readFile(fsys fs.FS, o IndexOptions, at, name string, allowed ...string) (file, error) {
	f := file{path: cmp.Or(o.Called[at], at), name: name}
	data, err := fs.ReadFile(fsys, at)
	if err != nil {
		return f, err
	}
	if f.body, err = parseObject(data); err != nil {
		return f, fmt.Errorf("%s: %w", f.path, err)
	}
	for member := range f.body {
		if !slices.Contains(allowed, member) {
			return f, fmt.Errorf("%s: %q is not allowed; want %s", f.path, member, strings.Join(allowed, ", "))
		}
	}
	return f, nil
}

func parseObject(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		if bytes.HasPrefix(data, []byte("\uFEFF")) {
			return nil, errors.New("want a JSON object: a byte order mark (the bytes EF BB BF) stands before it; save the file as UTF-8 without one")
		}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n")), err)
		}
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one JSON object, and nothing behind it")
	}
	if v == nil {
		return nil, errors.New("want a JSON object, not null")
	}
	return v, nil
}

// settings returns a body's settings flat, by names such as index.gc_deletes,
// and as text, which is how the cluster tells them.
func settings(body map[string]any) (map[string]string, error) {
	flat := map[string]string{}
	raw, ok := body["settings"]
	if !ok {
		return flat, nil
	}
	object, ok := raw.(map[string]any)
	if !ok {
		return nil, errors.New("settings: want an object")
	}
	flatten(flat, "", object)
	named := map[string]string{}
	for name, value := range flat {
		if !strings.HasPrefix(name, "index.") {
			name = "index." + name
		}
		named[name] = value
	}
	return named, nil
}

func flatten(flat map[string]string, prefix string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			flatten(flat, prefix+"."+name, value)
		}
	case []any:
		for i, value := range v {
			flatten(flat, prefix+"."+strconv.Itoa(i), value)
		}
	case nil: // the default
	default:
		flat[prefix[1:]] = fmt.Sprint(v)
	}
}

const (
	gcDeletes   = "index.gc_deletes"
	totalFields = "index.mapping.total_fields.limit"
	replicas    = "index.number_of_replicas"
)

// complete returns settings with what o says about them.
func (o IndexOptions) complete(flat map[string]string) map[string]string {
	if _, ok := flat[gcDeletes]; !ok && o.GCDeletes > 0 {
		flat[gcDeletes] = strconv.Itoa(int(o.GCDeletes/time.Second)) + "s"
	}
	if _, ok := flat[totalFields]; !ok && o.TotalFields > 0 {
		flat[totalFields] = strconv.Itoa(o.TotalFields)
	}
	if o.NoReplicas {
		flat[replicas] = "0"
	}
	return flat
}

// IndexBody returns what the index behind an alias is made of, by its file
// indices/<alias>.json: for a reindex, which takes it as its Body.
func IndexBody(fsys fs.FS, alias string, o IndexOptions) ([]byte, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	f, err := readFile(fsys, o, path.Join(indexFolder, alias+".json"), alias, "settings", "mappings")
	if err != nil {
		return nil, fmt.Errorf("opensearch: %w", err)
	}
	flat, err := settings(f.body)
	if err != nil {
		return nil, fmt.Errorf("opensearch: %s: %w", f.path, err)
	}
	return json.Marshal(o.withDefaults().indexBody(f, flat))
}

// indexBody returns the settings and mappings of the index of a file.
func (o IndexOptions) indexBody(f file, flat map[string]string) map[string]any {
	body := map[string]any{"settings": o.complete(flat)}
	if m, ok := f.body["mappings"]; ok {
		body["mappings"] = m
	}
	if marks := o.Marks[f.name]; marks != nil {
		body["mappings"] = marks.complete(jsonObject(f.body["mappings"]))
	}
	return body
}
