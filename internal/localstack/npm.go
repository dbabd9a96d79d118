package localstack

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
)

// Package is a package of npm that tests need. None of its code is run by npm.
type Package struct {
	Name, Version string
	Integrity     string   // "sha512-…", as npm writes it
	Files         []string // what is needed of it, by paths in the package
}

// FetchPackage returns the folder that has the files of p. A file has the last element
// of its path as its name. What ends in .br is decompressed, and what ends in .tar.br is
// a folder; both lose these endings. The first call fetches the package by npm, later
// ones need neither npm nor a network.
func FetchPackage(ctx context.Context, o Options, p Package) (string, error) {
	o, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	name := strings.NewReplacer("@", "", "/", "-").Replace(p.Name)
	home, err := fetch(ctx, o, name, fmt.Appendf(nil, "%s %q", p.Integrity, p.Files), p.fill)
	return filepath.Join(home, "lib"), err
}

// fill makes dir/lib.
func (p Package) fill(ctx context.Context, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("npm is needed once: %w", err)
	}
	if err := tool(ctx, dir, "npm pack", npm, "pack", "--silent", "--ignore-scripts", p.Name+"@"+p.Version); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("npm pack made %d archives: %w", len(archives), err)
	}
	if err := p.unpack(archives[0], filepath.Join(dir, "lib")); err != nil {
		return err
	}
	return os.Remove(archives[0])
}

// unpack writes the files of an archive to dir once the archive has the digest of p.
func (p Package) unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	digest := sha512.New()
	if _, err := io.Copy(digest, f); err != nil {
		return err
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(digest.Sum(nil)); got != p.Integrity {
		return fmt.Errorf("the archive has the digest %s, want %s", got, p.Integrity)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // no path of the archive leaves it
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // each file's Close is checked
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	missing := slices.Clone(p.Files)
	err = eachFile(unzipped, func(name string, r io.Reader) error {
		i := slices.Index(missing, strings.TrimPrefix(name, "package/"))
		if i < 0 {
			return nil
		}
		missing = slices.Delete(missing, i, i+1)
		if folder, ok := strings.CutSuffix(path.Base(name), ".tar.br"); ok {
			return eachFile(brotli.NewReader(r), func(name string, r io.Reader) error { return write(root, path.Join(folder, name), r) })
		}
		if file, ok := strings.CutSuffix(path.Base(name), ".br"); ok {
			return write(root, file, brotli.NewReader(r))
		}
		return write(root, path.Base(name), r)
	})
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the package has no %s", strings.Join(missing, ", "))
	}
	return err
}

// eachFile calls do with each regular file of a tar archive.
func eachFile(archive io.Reader, do func(name string, r io.Reader) error) error {
	for files := tar.NewReader(archive); ; {
		h, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case h.Typeflag != tar.TypeReg:
			continue
		}
		if err := do(h.Name, files); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// write makes a file that can be run: an archive of npm does not say which ones are
// programs.
func write(root *os.Root, name string, r io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
