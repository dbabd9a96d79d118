// Command release makes what users download of a version: binaries with their
// archives, packages and lists of modules, zips for Lambda, an image, the chart, and
// checksums of all. `make release` runs it, and its tests on what it made.
//
// Equal sources, Go and SOURCE_DATE_EPOCH make equal bytes: nothing that is written
// has a random id, or another time than that.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	log.SetFlags(0)
	version := flag.String("version", "", "version, such as v0.1.0 (default: of git describe, or v0.0.0-dev)")
	dist := flag.String("dist", "dist", "folder to write to; it is emptied first")
	flag.Parse()
	r, err := newRelease(".", *dist, *version)
	if err == nil {
		err = checkTree(r.root, "v"+r.version)
	}
	if err == nil {
		err = r.run()
	}
	if err != nil {
		log.Fatal(err)
	}
}

// release is one version, on its way from root to dist.
type release struct {
	root, dist string
	version    string    // without the v
	at         time.Time // of all that is written

	binaries map[target]string // paths of the command
	docs     []file            // completions, manual pages, licence, changelog
	work     string            // a folder for the binaries, removed at the end
}

// target is a system and a processor, by Go's names.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "_" + t.arch }

// exe is the ending of a program's name.
func (t target) exe() string {
	if t.os == "windows" {
		return ".exe"
	}
	return ""
}

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func newRelease(root, dist, version string) (*release, error) {
	if version == "" {
		// Without a tag the version is that of no release.
		out, _ := git(root, "describe", "--tags", "--match", "v[0-9]*")
		version = snapshot(strings.TrimSpace(out))
	}
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return nil, fmt.Errorf("VERSION=%q: want a version such as v0.1.0 or v0.1.0-rc.1", version)
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		out, err := git(root, "log", "-1", "--format=%ct")
		if err != nil {
			return nil, fmt.Errorf("the time of the last commit: %w; set SOURCE_DATE_EPOCH", err)
		}
		epoch = strings.TrimSpace(out)
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH=%q: want seconds since 1970", epoch)
	}
	return &release{root: root, dist: dist, version: strings.TrimPrefix(version, "v"), at: time.Unix(seconds, 0).UTC(), binaries: map[target]string{}}, nil
}

// described is what git describe says of a commit behind a tag.
var described = regexp.MustCompile(`^(v[0-9]+\.[0-9]+\.)([0-9]+)(-[^-]+)?-([0-9]+)-(g[0-9a-f]+)$`)

// snapshot is the version of a commit: behind that of its tag, before the next patch.
func snapshot(describe string) string {
	m := described.FindStringSubmatch(describe)
	switch {
	case describe == "":
		return "v0.0.0-dev"
	case m == nil: // the tag's own commit
		return describe
	case m[3] != "": // behind v0.1.0-rc.1: v0.1.0-rc.1.dev.5.gabcdef0
		return fmt.Sprintf("%s%s%s.dev.%s.%s", m[1], m[2], m[3], m[4], m[5])
	}
	patch, _ := strconv.Atoi(m[2]) // digits
	return fmt.Sprintf("%s%d-dev.%s.%s", m[1], patch+1, m[4], m[5])
}

// checkTree refuses to call something a version that its commit is not.
func checkTree(root, version string) error {
	changed, err := git(root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("the tree has changes that are in no commit: commit them, or set them aside by git stash --include-untracked\n%s", changed)
	}
	tagged, err := git(root, "rev-parse", "--verify", "--quiet", "refs/tags/"+version+"^{commit}")
	if err != nil {
		return nil //nolint:nilerr // a version without a tag yet
	}
	head, err := git(root, "rev-parse", "HEAD")
	if err == nil && head != tagged {
		err = fmt.Errorf("VERSION=%s is the tag of another commit, %.12s: check it out first", version, tagged)
	}
	return err
}

func (r *release) run() (err error) {
	if r.work, err = os.MkdirTemp("", "sluice-release"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := os.RemoveAll(r.dist); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dist, 0o755); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		make func() error
	}{
		{"binaries", r.buildAll},
		{"completions and manual pages", r.readDocs},
		{"archives", r.archives},
		{"packages", r.packages},
		{"lists of modules", r.boms},
		{"functions", r.functions},
		{"image", r.image},
		{"chart", r.chart},
		{"compose", r.compose},
		{"checksums", r.checksums},
	} {
		if err := step.make(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	log.Printf("%s has version %s", r.dist, r.version)
	return nil
}

// path is that of a file of the release.
func (r *release) path(format string, args ...any) string {
	return filepath.Join(r.dist, "sluice_"+r.version+"_"+fmt.Sprintf(format, args...))
}

func git(root string, args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output() //nolint:gosec // all arguments are from here
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}
