package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/sassoftware/go-rpmutils"
)

// Every file of the release that has programs has the licences of what the list of
// modules names.
func TestLicencesOfAllThatIsLinked(t *testing.T) {
	r := latest(t)
	for _, target := range targets {
		list := r.path("%s.cdx.json", target)
		archive := map[string][]byte{}
		if target.os == "windows" {
			archive = unZip(t, r.path("%s.zip", target))
		} else {
			for name, e := range unTarGz(t, read(t, r.path("%s.tar.gz", target))) {
				archive[name] = e.data
			}
		}
		linkedModules(t, list, "sluice", "sluice-local").in(t, "archive for "+target.String(), archive[r.folder(target)+thirdParty])
		if target.os != "linux" {
			continue
		}
		linked := linkedModules(t, list, "sluice")
		for name, text := range map[string][]byte{
			"deb":   debFile(t, r.path("%s.deb", target), copyrightPath),
			"rpm":   rpmFile(t, r.path("%s.rpm", target), copyrightPath),
			"image": imageFile(t, loadImage(t, r, target.arch), copyrightPath),
		} {
			linked.in(t, name+" for "+target.arch, text)
			if !bytes.HasPrefix(text, read(t, "../../LICENSE")) {
				t.Errorf("%s for %s: Sluice's own licence does not come first", name, target.arch)
			}
		}
	}
	for _, name := range []string{"lambda_amd64", "lambda_arm64", "lambda-tracing_amd64", "lambda-tracing_arm64"} {
		files := unZip(t, r.path("%s.zip", name))
		linkedModules(t, r.path("%s.cdx.json", name), "sluice-lambda").in(t, name, files[thirdParty])
		if !bytes.Equal(files["LICENSE"], read(t, "../../LICENSE")) {
			t.Errorf("%s has no licence of Sluice", name)
		}
	}
}

// modules have licence texts, by path and version.
type modules map[string][]string

func (m modules) in(t *testing.T, name string, text []byte) {
	t.Helper()
	for module, texts := range m {
		if !bytes.Contains(text, []byte("\n"+module+"\n")) {
			t.Errorf("%s does not name %s", name, module)
		}
		for _, want := range texts {
			if !bytes.Contains(text, []byte(want)) {
				t.Errorf("%s has not this of %s:\n%.200s", name, module, want)
			}
		}
	}
}

// linkedModules are those of programs that a list is of.
func linkedModules(t *testing.T, bom string, programs ...string) modules {
	t.Helper()
	type component struct {
		Ref           string `json:"bom-ref"`
		Name, Version string
	}
	var list struct {
		Components   []component
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(read(t, bom), &list); err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, d := range list.Dependencies {
		if _, program, _ := strings.Cut(d.Ref, "#cmd/"); slices.Contains(programs, program) {
			for _, ref := range d.DependsOn {
				linked[ref] = true
			}
		}
	}
	list.Components = slices.DeleteFunc(list.Components, func(c component) bool { return !linked[c.Ref] })
	all := modules{}
	args := []string{"mod", "download", "-json"}
	for _, c := range list.Components {
		if c.Name == "std" {
			all["std "+c.Version] = []string{"Copyright 2009 The Go Authors", "Additional IP Rights Grant (Patents)"}
			continue
		}
		args = append(args, c.Name+"@"+c.Version)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Version, Dir string }
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "NOTICE*"} {
			paths, _ := filepath.Glob(filepath.Join(m.Dir, pattern))
			for _, path := range paths {
				text := strings.TrimSpace(strings.ReplaceAll(string(read(t, path)), "\r\n", "\n"))
				all[m.Path+" "+m.Version] = append(all[m.Path+" "+m.Version], text)
			}
		}
		if len(all[m.Path+" "+m.Version]) == 0 {
			t.Errorf("%s has no text", m.Path)
		}
	}
	if len(all) < 20 || len(all) != len(list.Components) {
		t.Fatalf("%d modules of %d in %s", len(all), len(list.Components), bom)
	}
	return all
}

func TestAModuleWithoutLicenceEndsTheRelease(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "NOTICE"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := licenceTexts(map[string]string{"example.com/x v1.0.0": folder}); err == nil || !strings.Contains(err.Error(), "example.com/x v1.0.0") {
		t.Errorf("%v", err)
	}
}

func unZip(t *testing.T, path string) map[string][]byte {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	files := map[string][]byte{}
	for _, f := range z.File {
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(part); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func debFile(t *testing.T, deb, name string) []byte {
	t.Helper()
	return unTar(t, strings.NewReader(must(t, "dpkg-deb", "--fsys-tarfile", deb)))["./"+name].data
}

func rpmFile(t *testing.T, path, name string) []byte {
	t.Helper()
	rpm, err := rpmutils.ReadRpm(bytes.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := rpm.ExpandPayload(root); err != nil {
		t.Fatal(err)
	}
	return read(t, filepath.Join(root, name))
}

func imageFile(t *testing.T, img v1.Image, name string) []byte {
	t.Helper()
	flat := mutate.Extract(img)
	defer func() { _ = flat.Close() }()
	return unTar(t, flat)[name].data
}
