package localstack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
)

// tarOf returns an archive of files, which are names and contents by turns.
func tarOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for ; len(files) > 0; files = files[2:] {
		if err := w.WriteHeader(&tar.Header{Name: files[0], Size: int64(len(files[1])), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(files[1]))
	}
	w.Close()
	return b.Bytes()
}

func compressed(data []byte) string {
	var b bytes.Buffer
	w := brotli.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.String()
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	pack := func(files ...string) (archive string, p Package) {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(tarOf(t, files...))
		w.Close()
		digest := sha512.Sum512(b.Bytes())
		archive = filepath.Join(dir, "x.tgz")
		if err := os.WriteFile(archive, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return archive, Package{Integrity: "sha512-" + base64.StdEncoding.EncodeToString(digest[:])}
	}
	archive, p := pack("package/index.js", "no", "package/bin/tool.br", compressed([]byte("tool")),
		"package/bin/libs.tar.br", compressed(tarOf(t, "lib/a.so", "a", "b", "b")), "package/plain.js", "plain")
	p.Files = []string{"bin/tool.br", "bin/libs.tar.br", "plain.js"}
	lib := filepath.Join(dir, "lib")
	if err := p.unpack(archive, lib); err != nil {
		t.Fatal(err)
	}
	var got []string
	fs.WalkDir(os.DirFS(lib), ".", func(path string, d fs.DirEntry, _ error) error {
		if !d.IsDir() {
			text, _ := os.ReadFile(filepath.Join(lib, path))
			got = append(got, path+"="+string(text))
		}
		return nil
	})
	if want := "libs/b=b libs/lib/a.so=a plain.js=plain tool=tool"; strings.Join(got, " ") != want {
		t.Errorf("unpacked %s, want %s", got, want)
	}

	leaving, q := pack("package/bin/libs.tar.br", compressed(tarOf(t, "../../out", "x")))
	q.Files = []string{"bin/libs.tar.br"}
	for what, try := range map[string]Package{"escapes": q, "has the digest": p} {
		if err := try.unpack(leaving, filepath.Join(dir, what)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	archive, q = pack("package/plain.js", "plain")
	q.Files = []string{"plain.js", "other.js"}
	if err := q.unpack(archive, filepath.Join(dir, "short")); err == nil || !strings.Contains(err.Error(), "has no other.js") {
		t.Errorf("a file that is missing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("a file left the folder")
	}
}
