package daemons

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestNote(t *testing.T) {
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	if got := Noted(env); got != nil {
		t.Errorf("before: %v", got)
	}
	note := func(d Daemon) func() {
		t.Helper()
		forget, err := Note(env, d)
		if err != nil {
			t.Fatal(err)
		}
		return forget
	}
	one, two := Daemon{"/a/sluice.db", "a"}, Daemon{"/b/sluice.db", "b"}
	forgetOne := note(one)
	note(Daemon{"/b/sluice.db", "old"}) // which was killed
	note(two)
	got := Noted(env)
	if len(got) != 2 || !slices.Contains(got, one) || !slices.Contains(got, two) {
		t.Errorf("%v", got)
	}
	in := folder(env)
	info, err := os.Stat(in)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v: others could write a note", info.Mode(), err)
	}
	for _, text := range []string{"", "{", "{}"} {
		if err := os.WriteFile(filepath.Join(in, "x.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Noted(env); len(got) != 2 {
			t.Errorf("%q: %v", text, got)
		}
	}
	if err := os.Chmod(in, 0o770); err != nil {
		t.Fatal(err)
	}
	if got := Noted(env); got != nil {
		t.Errorf("where others can write: %v", got)
	}
	if err := os.Chmod(in, 0o700); err != nil {
		t.Fatal(err)
	}
	forgetOne()
	if got := Noted(env); !slices.Equal(got, []Daemon{two}) {
		t.Errorf("after its end: %v", got)
	}
}

// A daemon without a home, or whose home cannot be written, does its work.
func TestNoteNowhere(t *testing.T) {
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "sluice"), filepath.Join(dir, "missing")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for home, fails := range map[string]bool{"": false, ".": false, file: false, missing: false, dir: true} {
		env := func(name string) string { return map[string]string{"XDG_CACHE_HOME": home}[name] }
		forget, err := Note(env, Daemon{"sluice.db", "a"})
		if (err != nil) != fails || Noted(env) != nil {
			t.Errorf("%q: %v", home, err)
		}
		forget()
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a home was made")
	}
}
