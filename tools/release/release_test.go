package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sassoftware/go-rpmutils"
	"golang.org/x/mod/semver"
)

// The tests are of the release that `make release` just made.
var (
	flagVersion = flag.String("version", "", "as the program's")
	flagDist    = flag.String("dist", "../../dist", "where the release is")
)

func latest(t *testing.T) *release {
	t.Helper()
	r, err := newRelease("../..", *flagDist, *flagVersion)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run make release", err)
	}
	return data
}

// unTar has the files of an archive by name, and folders with a slash behind it.
func unTar(t *testing.T, archive io.Reader) map[string]*entry {
	t.Helper()
	files := map[string]*entry{}
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		if h.Typeflag == tar.TypeDir {
			name += "/"
		}
		files[name] = &entry{h, data}
	}
}

type entry struct {
	*tar.Header
	data []byte
}

func unTarGz(t *testing.T, data []byte) map[string]*entry {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return unTar(t, z)
}

func TestChecksumsAreOfAllFiles(t *testing.T) {
	r := latest(t)
	want := map[string]bool{}
	for line := range strings.Lines(string(read(t, r.path("checksums.txt")))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if have := fmt.Sprintf("%x", sha256.Sum256(read(t, filepath.Join(r.dist, name)))); have != sum {
			t.Errorf("%s has the checksum %s, want %s", name, have, sum)
		}
		want[name] = true
	}
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); !want[name] && name != filepath.Base(r.path("checksums.txt")) {
			t.Errorf("%s has no checksum", name)
		}
	}
	// 6 archives, 4 packages, 4 functions, 10 lists of modules, image, chart, compose
	if len(want) != 27 {
		t.Errorf("%d files, want 27: %q", len(want), slices.Sorted(maps.Keys(want)))
	}
}

func TestTwoRunsAreEqual(t *testing.T) {
	r := latest(t)
	again := *r
	again.dist, again.binaries = t.TempDir(), map[target]string{}
	if err := again.run(); err != nil {
		t.Fatal(err)
	}
	if first, second := read(t, r.path("checksums.txt")), read(t, again.path("checksums.txt")); !bytes.Equal(first, second) {
		t.Errorf("the sums of one run:\n%s\nof another:\n%s", first, second)
	}
}

func TestArchives(t *testing.T) {
	const limit = 37 << 20 // of a binary: notice what makes it larger
	r := latest(t)
	for _, target := range targets {
		names := map[string]int{}
		if target.os == "windows" {
			z, err := zip.OpenReader(r.path("%s.zip", target))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range z.File {
				names[f.Name] = int(f.UncompressedSize64) //nolint:gosec // small
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			for name, e := range unTarGz(t, read(t, r.path("%s.tar.gz", target))) {
				names[name] = len(e.data)
			}
		}
		for name, size := range maps.Clone(names) {
			inside, ok := strings.CutPrefix(name, r.folder(target))
			if !ok {
				t.Errorf("%s: %s is in no folder of its own", target, name)
			}
			names[strings.TrimSuffix(inside, ".exe")] = size
		}
		for _, want := range []string{"sluice", "sluice-local", "LICENSE", thirdParty, "CHANGELOG.md", "completions/sluice.bash", "completions/_sluice", "completions/sluice.fish", "completions/sluice.ps1", "man/sluice.1", "man/sluice-dlq.1"} {
			if names[want] == 0 {
				t.Errorf("%s: no %s, or an empty one", target, want)
			}
		}
		if n := names["sluice"]; n > limit {
			t.Errorf("%s: a binary of %d bytes, want %d at most", target, n, limit)
		}
	}
}

func TestTheBinarySaysItsVersion(t *testing.T) {
	r := latest(t)
	host := target{runtime.GOOS, runtime.GOARCH}
	program := unTarGz(t, read(t, r.path("%s.tar.gz", host)))[r.folder(host)+"sluice"]
	if program.Mode != 0o755 {
		t.Errorf("mode %o", program.Mode)
	}
	binary := filepath.Join(t.TempDir(), "sluice")
	if err := os.WriteFile(binary, program.data, 0o700); err != nil { //nolint:gosec // it runs
		t.Fatal(err)
	}
	compiler, err := r.goEnv("GOVERSION") // not always that of this test: its module may want a newer one
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("sluice v%s %s %s/%s\n", r.version, compiler, runtime.GOOS, runtime.GOARCH)
	if have := must(t, binary, "version"); have != want {
		t.Errorf("%q, want %q", have, want)
	}
}

func TestManualPages(t *testing.T) {
	r := latest(t)
	pages := map[string]string{}
	for name, e := range unTarGz(t, read(t, r.path("linux_amd64.tar.gz"))) {
		if page, ok := strings.CutPrefix(name, r.folder(target{"linux", "amd64"})+"man/"); ok && page != "" {
			pages[page] = string(e.data)
		}
	}
	for page, want := range map[string]string{
		"sluice.1": ".SH AVAILABLE COMMANDS", "sluice-run.1": "serve Go's profiles", "sluice-dlq-list.1": ".SH EXAMPLES", "sluice-state-import-kcl.1": ".SH USAGE",
	} {
		if !strings.Contains(strings.ReplaceAll(pages[page], `\(cq`, "'"), want) {
			t.Errorf("%s lacks %q:\n%s", page, want, pages[page])
		}
	}
	for page, text := range pages {
		// NAME is what apropos finds: one line.
		name, _, _ := strings.Cut(page, ".")
		if _, line, _ := strings.Cut(text, ".SH NAME\n"); !strings.HasPrefix(line, name+` \- `) {
			t.Errorf("%s: the section NAME begins with %.60q", page, line)
		}
	}
	if len(pages) < 40 {
		t.Errorf("%d manual pages: %q", len(pages), slices.Sorted(maps.Keys(pages)))
	}
	if _, err := r.manuals(func(...string) (string, error) { return "help", nil }); err == nil {
		t.Error("manual pages were made of a help without usage")
	}
}

func TestDeb(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Fatal("dpkg-deb is not on PATH: install dpkg, whose program checks the packages")
	}
	r := latest(t)
	for _, arch := range []string{"amd64", "arm64"} {
		deb := r.path("linux_%s.deb", arch)
		info := must(t, dpkg, "-I", deb)
		for _, want := range []string{"Package: sluice\n", "Architecture: " + arch + "\n", "Version: " + strings.Replace(r.version, "-", "~", 1)} {
			if !strings.Contains(info, want) {
				t.Errorf("%s lacks %q:\n%s", deb, want, info)
			}
		}
		contents := must(t, dpkg, "-c", deb)
		for _, want := range packaged {
			if !strings.Contains(contents, " ."+want+"\n") {
				t.Errorf("%s has no %s:\n%s", deb, want, contents)
			}
		}
	}
	// As root dpkg installs into a folder, and its scripts, which run outside of it, leave
	// this system alone. Others unpack.
	root := t.TempDir()
	deb := r.path("linux_%s.deb", runtime.GOARCH)
	if os.Getuid() == 0 {
		for _, dir := range []string{"updates", "info"} {
			if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil { //nolint:gosec // of a test
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		dpkg := func(what, arg, status string) {
			must(t, "dpkg", "--root="+root, "--force-not-root", "--force-script-chrootless", "--force-depends", "--force-architecture", what, arg)
			if have := string(read(t, filepath.Join(root, "var/lib/dpkg/status"))); !strings.Contains(have, status) {
				t.Errorf("after dpkg %s: %s", what, have)
			}
		}
		dpkg("-i", deb, "Status: install ok installed")
		dpkg("-i", deb, "Status: install ok installed") // an upgrade's scripts
		defer func() {
			config := filepath.Join(root, "etc/sluice/sluice.yaml")
			if err := os.WriteFile(config, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			dpkg("-P", "sluice", "")
			read(t, config) // it is the user's
			if _, err := os.Stat(filepath.Join(root, "usr/bin/sluice")); !os.IsNotExist(err) {
				t.Errorf("a removed package leaves its program: %v", err)
			}
		}()
	} else {
		must(t, dpkg, "-x", deb, root)
	}
	if have := must(t, filepath.Join(root, "usr/bin/sluice"), "version"); !strings.HasPrefix(have, "sluice v"+r.version+" ") {
		t.Errorf("the installed program is %q", have)
	}
	checkUnit(t, root)
}

// packaged is what packages have, among others.
var packaged = []string{
	"/usr/bin/sluice", "/usr/lib/systemd/system/sluice.service", "/usr/lib/sysusers.d/sluice.conf",
	"/usr/share/man/man1/sluice-dlq.1.gz", "/usr/share/bash-completion/completions/sluice", "/usr/share/doc/sluice/copyright",
}

func checkUnit(t *testing.T, root string) {
	t.Helper()
	unit := filepath.Join(root, "usr/lib/systemd/system/sluice.service")
	text := string(read(t, unit))
	if strings.Contains(text, "/usr/local") || !strings.HasPrefix(text, "[Unit]\n") || !strings.Contains(text, "\nExecStart=/usr/bin/sluice run ") {
		t.Errorf("the packaged unit starts another program:\n%s", text)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("NO systemd-analyze ON THIS MACHINE: the unit's security was NOT checked")
		return
	}
	must(t, analyze, "security", "--offline=true", "--threshold=20", unit) // 0 is safest, 100 unsafe
}

func TestRPM(t *testing.T) {
	r := latest(t)
	for arch, want := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		rpm, err := rpmutils.ReadRpm(bytes.NewReader(read(t, r.path("linux_%s.rpm", arch))))
		if err != nil {
			t.Fatal(err)
		}
		nevra, err := rpm.Header.GetNEVRA()
		if err != nil {
			t.Fatal(err)
		}
		if nevra.Name != "sluice" || nevra.Arch != want || nevra.Version != strings.Replace(r.version, "-", "~", 1) {
			t.Errorf("%+v, want sluice %s for %s", nevra, r.version, want)
		}
		files, err := rpm.Header.GetFiles()
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]int{}
		for _, f := range files {
			have[f.Name()] = f.Mode() & 0o777
		}
		for _, name := range packaged {
			if mode := have[name]; mode == 0 || (name == "/usr/bin/sluice") != (mode == 0o755) {
				t.Errorf("%s: %s has mode %o", arch, name, mode)
			}
		}
		root := t.TempDir()
		if err := rpm.ExpandPayload(root); err != nil {
			t.Fatal(err)
		}
		if arch == runtime.GOARCH {
			binary := filepath.Join(root, "usr/bin/sluice")
			if err := os.Chmod(binary, 0o700); err != nil { //nolint:gosec // the library leaves modes out
				t.Fatal(err)
			}
			must(t, binary, "version")
		}
		checkUnit(t, root)
	}
}

func TestListsOfModules(t *testing.T) {
	r := latest(t)
	paths, err := filepath.Glob(filepath.Join(r.dist, "*.cdx.json"))
	if err != nil || len(paths) != 10 {
		t.Fatalf("%d lists, want 10: %v", len(paths), err)
	}
	for _, path := range paths {
		var bom struct {
			SerialNumber string
			Metadata     struct {
				Component struct{ Name, Version, Purl string }
			}
			Components []struct{ Name, Version, Purl string }
		}
		if err := json.Unmarshal(read(t, path), &bom); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, c := range bom.Components {
			names[c.Name] = c.Version != "" && strings.HasPrefix(c.Purl, "pkg:golang/"+c.Name+"@")
		}
		program := "sluice-lambda"
		if names["sluice-local"] = strings.Contains(strings.Join(slices.Sorted(maps.Keys(names)), " "), "sluice-local"); names["sluice-local"] {
			program = "sluice"
		}
		if is := bom.Metadata.Component; is.Name != program || is.Purl != "pkg:golang/github.com/sluicehq/sluice@v"+r.version+"#cmd/"+program || strings.Contains(path, "lambda") != (program == "sluice-lambda") {
			t.Errorf("%s is of %+v", path, is)
		}
		if bom.SerialNumber != "" || bom.Metadata.Component.Version != "v"+r.version || !names["std"] || !names["github.com/aws/aws-sdk-go-v2"] {
			t.Errorf("%s: number %q, %+v, %v", path, bom.SerialNumber, bom.Metadata, names)
		}
	}
}

func TestFunctions(t *testing.T) {
	r := latest(t)
	for _, name := range []string{"lambda_amd64", "lambda_arm64", "lambda-tracing_amd64", "lambda-tracing_arm64"} {
		z, err := zip.OpenReader(r.path("%s.zip", name))
		if err != nil {
			t.Fatal(err)
		}
		if len(z.File) != 3 || z.File[0].Name != "bootstrap" || z.File[0].Mode() != 0o755 {
			t.Errorf("%s: want bootstrap, which runs, and licences: %v", name, z.File)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChart(t *testing.T) {
	r := latest(t)
	const helm = "../../.cache/deploy/bin/helm"
	out := must(t, helm, "template", "x", "--kube-version", "1.35.0", filepath.Join(r.dist, "sluice-"+r.version+".tgz"),
		"--set-file", "config=../../deploy/compose/sluice.yaml")
	if !strings.Contains(out, "image: \"ghcr.io/sluicehq/sluice:"+r.version+"\"\n") {
		t.Errorf("the chart names another image:\n%s", out)
	}
}

func TestComposeBundle(t *testing.T) {
	r := latest(t)
	files := unTarGz(t, read(t, r.path("compose.tar.gz")))
	folder := "sluice_" + r.version + "_compose/deploy/"
	compose := string(files[folder+"compose/compose.yaml"].data)
	if strings.Contains(compose, "build:") || !strings.Contains(compose, "    image: ghcr.io/sluicehq/sluice:"+r.version+"\n") {
		t.Errorf("compose.yaml builds an image:\n%s", compose)
	}
	// Every file that it names is there.
	for line := range strings.Lines(compose) {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ":")
		if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || strings.HasSuffix(strings.TrimSpace(line), "compose.yaml") && strings.HasPrefix(strings.TrimSpace(line), "- ") {
			if path := filepath.Join(folder, "compose", name); files[path] == nil {
				t.Errorf("no %s", path)
			}
		}
	}
}

func TestVersionsAndTimesThatAreNone(t *testing.T) {
	for _, version := range []string{"0.1.0", "v1", "v1.2", "vx", "v1.0.0+build"} {
		if _, err := newRelease("../..", "dist", version); err == nil || !strings.Contains(err.Error(), "VERSION") {
			t.Errorf("%s: %v", version, err)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "today")
	if _, err := newRelease("../..", "dist", "v0.1.0"); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("%v", err)
	}
}

func TestSnapshot(t *testing.T) {
	for describe, want := range map[string]string{
		"":                        "v0.0.0-dev",
		"v0.1.0":                  "v0.1.0",
		"v0.1.0-rc.1":             "v0.1.0-rc.1",
		"v0.1.0-5-gabc1234":       "v0.1.1-dev.5.gabc1234",
		"v0.1.0-rc.1-12-g0000000": "v0.1.0-rc.1.dev.12.g0000000",
	} {
		have := snapshot(describe)
		tag, _, behind := strings.Cut(describe, "-g")
		if have != want || !semver.IsValid(have) || behind && semver.Compare(have, tag[:strings.LastIndex(tag, "-")]) <= 0 {
			t.Errorf("%q: %s, want %s, and behind the tag", describe, have, want)
		}
	}
}

func TestATagIsOfItsCommit(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	root := t.TempDir()
	do := func(args ...string) {
		must(t, "git", append([]string{"-C", root, "-c", "user.name=x", "-c", "user.email=x"}, args...)...)
	}
	want := func(part string) {
		t.Helper()
		if err := checkTree(root, "v0.1.0"); (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q", err, part)
		}
	}
	do("init", "-q")
	do("commit", "-q", "--allow-empty", "-m", "one")
	want("") // not tagged yet
	do("tag", "v0.1.0")
	want("")
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want("in no commit")
	do("add", "new")
	do("commit", "-q", "-m", "two")
	want("another commit")
}
