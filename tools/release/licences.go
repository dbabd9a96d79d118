package main

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

const thirdParty = "THIRD_PARTY_LICENSES"

// licences are the texts that the licences of linked modules, and of Go, want beside
// programs. Modules with the same text share it.
func (r *release) licences(programs ...string) (file, error) {
	folders := map[string]string{} // by the path and version of a module
	goroot, err := r.goEnv("GOROOT")
	if err != nil {
		return file{}, err
	}
	cache, err := r.goEnv("GOMODCACHE")
	if err != nil {
		return file{}, err
	}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return file{}, err
		}
		folders["std "+strings.TrimPrefix(info.GoVersion, "go")] = goroot
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			path, err := module.EscapePath(m.Path)
			version, err2 := module.EscapeVersion(m.Version)
			if err := errors.Join(err, err2); err != nil {
				return file{}, err
			}
			folders[m.Path+" "+m.Version] = filepath.Join(cache, path+"@"+version)
		}
	}
	data, err := licenceTexts(folders)
	return file{name: thirdParty, data: data, mode: 0o644}, err
}

func licenceTexts(folders map[string]string) ([]byte, error) {
	users := map[string][]string{} // of a text
	for _, m := range slices.Sorted(maps.Keys(folders)) {
		texts, err := licencesBelow(folders[m], strings.HasPrefix(m, "std "))
		if err != nil {
			return nil, fmt.Errorf("the licence of %s: %w", m, err)
		}
		for _, text := range texts {
			if !slices.Contains(users[text], m) {
				users[text] = append(users[text], m)
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(users), func(a, b string) int {
		return cmp.Or(slices.Compare(users[a], users[b]), strings.Compare(a, b))
	})
	var all strings.Builder
	all.WriteString("The programs of Sluice contain these libraries, under these licences.\n")
	for _, text := range order {
		rule := strings.Repeat("=", 80)
		fmt.Fprintf(&all, "\n%s\n%s\n%s\n\n%s\n", rule, strings.Join(users[text], "\n"), rule, strings.TrimRight(text, "\n"))
	}
	return []byte(all.String()), nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licencesBelow reads the files of a module. Code that it copied from others has its
// licence beside it, in a folder below. Those below Go's folder are not linked.
func licencesBelow(folder string, top bool) (texts []string, err error) {
	licensed := false
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != folder && (top || name == "testdata" || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) == ".go" || !licenceFile.MatchString(name):
			return nil
		default:
			text, err := os.ReadFile(path) //nolint:gosec // of the module cache
			texts = append(texts, strings.ReplaceAll(string(text), "\r\n", "\n"))
			kind, _, _ := strings.Cut(strings.ToLower(name), ".")
			licensed = licensed || filepath.Dir(path) == folder && kind != "notice" && kind != "patents"
			return err
		}
	})
	if err == nil && !licensed {
		err = fmt.Errorf("no file LICENSE in %s", folder)
	}
	return texts, err
}

func (r *release) goEnv(name string) (string, error) {
	cmd := exec.Command("go", "env", name) //nolint:gosec // a name of this program
	cmd.Dir = r.root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// licence is Sluice's own.
func (r *release) licence() file {
	return r.docs[slices.IndexFunc(r.docs, func(f file) bool { return f.name == "LICENSE" })]
}

// copyrightPath is where Debian wants all licences of a package, in one file.
const copyrightPath = "usr/share/doc/sluice/copyright"

func (r *release) copyright(program string) ([]byte, error) {
	others, err := r.licences(program)
	return slices.Concat(r.licence().data, []byte("\n"), others.data), err
}
