package access

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestMake(t *testing.T) {
	path := FileOf(filepath.Join(t.TempDir(), "sluice.db"))
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is none: %v", err)
	}
	first, err := Make(path)
	if err != nil || Check(first) != nil {
		t.Fatalf("%q, %v", first, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if again, err := Make(path); again != first || err != nil {
		t.Errorf("a second start: %q, %v", again, err)
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
	if other, err := Make(path + "2"); other == first || err != nil {
		t.Errorf("another daemon has the same: %v", err)
	}
	if _, err := Make(filepath.Join(path, "nowhere")); err == nil {
		t.Error("there is no folder")
	}
}

func TestRead(t *testing.T) {
	const good = "0123456789abcdef"
	for name, c := range map[string]struct {
		mode fs.FileMode
		text string
		want string
	}{
		"good":                {0o600, good, ""},
		"with its line's end": {0o600, good + "\r\n", ""},
		"of a group":          {0o640, good, ""},
		"of everybody":        {0o644, good, "has mode 0644, so that everybody on this machine may use it: chmod o="},
		"empty":               {0o600, "\n", "16 characters at least"},
		"short":               {0o600, good[1:], "16 characters at least"},
		"two lines":           {0o600, good + "\n" + good, "ASCII alone"},
		"not ASCII":           {0o600, good + "ä", "ASCII alone"},
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := Make(path)
		switch {
		case c.want == "" && (got != good || err != nil):
			t.Errorf("%s: %q, %v", name, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), good)):
			t.Errorf("%s: %q, %v; want %s", name, got, err, c.want)
		}
	}
}

// A user with write access to the state file's folder could create the token file
// first, and know the token.
func TestMakeRefusesFilesOfOthers(t *testing.T) {
	if !owned {
		t.Log("files have no owners here")
		return
	}
	const me, another = 1000, 2000
	dir := t.TempDir()
	for name, c := range map[string]struct {
		file, folder uint32
		fine         bool
	}{
		"mine":                        {me, me, true},
		"root's":                      {0, me, true},
		"of whoever has the folder":   {another, another, true},
		"another's in root's folder":  {another, 0, false},
		"another's in a folder of me": {another, me, false},
	} {
		owners := map[string]uint32{dir + "/.": c.folder, filepath.Join(dir, "t"): c.file}
		err := checkTokenOwner(filepath.Join(dir, "t"), me, func(path string) (uint32, error) { return owners[path], nil })
		if (err == nil) != c.fine || err != nil && !strings.Contains(err.Error(), "belongs to another user (2000)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root gives files away
	}
	path := filepath.Join(dir, "link")
	if err := errors.Join(os.Symlink(filepath.Join(dir, "target"), path), os.WriteFile(filepath.Join(dir, "target"), []byte("0123456789abcdef"), 0o600), os.Lchown(path, another, another)); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(path); err == nil || !strings.Contains(err.Error(), "belongs to another user (2000)") {
		t.Errorf("a link of another: %v", err)
	}
}
