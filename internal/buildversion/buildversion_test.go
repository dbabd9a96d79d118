package buildversion

import (
	"runtime/debug"
	"testing"
	"time"
)

func TestVersion(t *testing.T) {
	const hash, short = "0123456789abcdef0123456789abcdef01234567", "0123456789ab"
	at := time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)
	commit := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "vcs.revision", Value: hash}, {Key: "vcs.time", Value: "2026-01-31T16:04:05+01:00"}, {Key: "vcs.modified", Value: "true"}}
	for _, tt := range []struct {
		module   string
		settings []debug.BuildSetting
		want     Build
	}{
		{"v1.2.3", commit, Build{"v1.2.3", hash, at, true}},
		{"v1.2.3", nil, Build{Version: "v1.2.3"}},
		{"(devel)", commit, Build{short, hash, at, true}},
		{"(devel)", nil, Build{Version: "devel"}},
		{"", []debug.BuildSetting{{Key: "vcs.revision", Value: "0123"}}, Build{Version: "devel", Commit: "0123"}},
		{"v0.1.1-0.20260131150405-0123456789ab", nil, Build{"v0.1.1-0.20260131150405-0123456789ab", short, at, false}},
		{"v0.1.1-0.20260131150405-0123456789ab+dirty", commit, Build{"v0.1.1-0.20260131150405-0123456789ab+dirty", hash, at, true}},
		{"v1.2.3", []debug.BuildSetting{{Key: "vcs.time", Value: "yesterday"}, {Key: "vcs.modified", Value: "false"}}, Build{Version: "v1.2.3"}},
	} {
		if got := of(&debug.BuildInfo{Main: debug.Module{Version: tt.module}, Settings: tt.settings}); got != tt.want {
			t.Errorf("module %q: %+v, want %+v", tt.module, got, tt.want)
		}
	}
}

func TestRead(t *testing.T) {
	if b := Read(); b.Version == "" || Get() != b.Version {
		t.Errorf("%+v, and %q", b, Get())
	}
}
