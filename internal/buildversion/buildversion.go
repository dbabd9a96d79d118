// Package buildversion says which version of a program runs.
package buildversion

import (
	"runtime/debug"
	"time"

	"golang.org/x/mod/module"
)

// Build is what a program was built from.
type Build struct {
	Version  string    `json:"version"`          // of the module; without one, the start of Commit, "devel" or "unknown"
	Commit   string    `json:"commit,omitempty"` // its hash, or the start of it; "" if the build does not know it
	Date     time.Time `json:"date,omitzero"`    // of the commit, in UTC; zero if the build does not know it
	Modified bool      `json:"modified"`         // files differed from the commit
}

// release is the version that make release gives a program, by the linker.
var release string

// Get returns the version of the release, else that of the program's module, or,
// where the build has neither, the commit that it was built from.
func Get() string { return Read().Version }

// Read returns what the program was built from.
func Read() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{Version: "unknown"}
	}
	b := of(info)
	if release != "" {
		b.Version = release
	}
	return b
}

func of(info *debug.BuildInfo) Build {
	b := Build{Version: info.Main.Version}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date, _ = time.Parse(time.RFC3339, s.Value)
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	// A module of a proxy has no repository around it. A version of no release names
	// the commit.
	if b.Commit == "" && module.IsPseudoVersion(b.Version) {
		b.Commit, _ = module.PseudoVersionRev(b.Version)
		b.Date, _ = module.PseudoVersionTime(b.Version)
	}
	b.Date = b.Date.UTC()
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
		if len(b.Commit) >= 12 {
			b.Version = b.Commit[:12]
		}
	}
	return b
}
