// Package daemons notes which state files a user's daemons hold, so that the
// user's commands find them from any folder. A daemon's address is beside its
// state file. The notes are in a folder that only the user can write.
package daemons

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluicehq/sluice/internal/access"
)

// Daemon is a daemon that runs, or ran when it was noted. A killed daemon leaves
// its note; the lock on its state file tells.
type Daemon struct {
	State       string `json:"state"` // absolute path
	Application string `json:"application"`
}

// folder is where notes are; "" is nowhere. No home is made for them.
func folder(env func(string) string) string {
	home, in := env("XDG_CACHE_HOME"), "sluice/daemons"
	if home == "" {
		home, in = env("HOME"), ".cache/sluice/daemons"
	}
	if info, err := os.Stat(home); err != nil || !info.IsDir() || !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, in)
}

// SameFile reports whether two paths lead to one state file.
func SameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// Note notes a daemon, and replaces an earlier note with its state file, until the
// returned function is called. The caller holds the state file. Without a home
// directory nothing is noted.
func Note(env func(string) string, d Daemon) (forget func(), err error) {
	in := folder(env)
	if in == "" {
		return func() {}, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("the note by which commands find the daemon: %w", err)
		}
	}()
	if d.State, err = filepath.Abs(d.State); err != nil {
		return func() {}, err
	}
	data, err := json.Marshal(d)
	if err != nil {
		return func() {}, err
	}
	if err := os.MkdirAll(in, 0o700); err != nil {
		return func() {}, err
	}
	hash := sha256.Sum256([]byte(d.State))
	path := filepath.Join(in, hex.EncodeToString(hash[:8])+".json")
	if err := access.Store(path, string(data)); err != nil {
		return func() {}, err
	}
	return func() { _ = os.Remove(path) }, nil
}

// Noted returns the daemons that were noted.
func Noted(env func(string) string) []Daemon {
	in := folder(env)
	if info, err := os.Stat(in); err != nil || info.Mode()&0o022 != 0 { // others could write there
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(in, "*.json")) // the pattern is good
	var all []Daemon
	for _, path := range paths {
		var d Daemon
		if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &d) == nil && d.State != "" {
			all = append(all, d)
		}
	}
	return all
}
