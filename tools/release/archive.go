package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file of an archive, a folder if its name ends in a slash.
type file struct {
	name  string
	data  []byte
	mode  int64
	owner int // user and group; 0 is root
}

// archives are the binaries with what belongs to them.
func (r *release) archives() error {
	for _, t := range targets {
		var files []file
		for _, program := range []string{r.binaries[t], r.local(t)} {
			data, err := os.ReadFile(program) //nolint:gosec // just built
			if err != nil {
				return err
			}
			files = append(files, file{name: filepath.Base(program), data: data, mode: 0o755})
		}
		licences, err := r.licences(r.binaries[t], r.local(t))
		if err != nil {
			return err
		}
		files = append(append(files, licences), r.docs...)
		for i := range files {
			files[i].name = r.folder(t) + files[i].name
		}
		if t.os == "windows" {
			err = r.zip(r.path("%s.zip", t), files)
		} else {
			err = r.tarGz(r.path("%s.tar.gz", t), files)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folder is the only one at the top of an archive.
func (r *release) folder(t target) string { return filepath.Base(r.path("%s", t)) + "/" }

func (r *release) tarGz(to string, files []file) error {
	return create(to, func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		return errors.Join(r.tar(z, files), z.Close())
	})
}

func (r *release) tar(w io.Writer, files []file) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: tar.TypeReg, Size: int64(len(f.data)), Mode: f.mode, Uid: f.owner, Gid: f.owner, ModTime: r.at, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return t.Close()
}

func (r *release) zip(to string, files []file) error {
	return create(to, func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, f := range files {
			h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.at}
			h.SetMode(os.FileMode(f.mode)) //nolint:gosec // a mode has few bits
			part, err := z.CreateHeader(h)
			if err != nil {
				return err
			}
			if _, err := part.Write(f.data); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

// tree is the files below a folder of the repository that git knows, by their paths
// there; what lies beside them on one machine is in no release.
func (r *release) tree(folder string) ([]file, error) {
	tracked, err := git(r.root, "ls-files", "-z", "--", folder)
	if err != nil {
		return nil, err
	}
	var files []file
	for name := range strings.SplitSeq(strings.TrimSuffix(tracked, "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: path.Clean(name), data: data, mode: 0o644})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// checksums are in the format of sha256sum -c.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.dist, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(r.path("checksums.txt"), []byte(text.String()), 0o644) //nolint:gosec // it is published
}

func create(to string, write func(io.Writer) error) error {
	f, err := os.Create(to) //nolint:gosec // a path of the release
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
