package buildversion

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	for _, tt := range []struct {
		module   string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", []debug.BuildSetting{commit}, "v1.2.3"},
		{"(devel)", []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, commit}, "0123456789ab"},
		{"(devel)", nil, "devel"},
		{"", []debug.BuildSetting{{Key: "vcs.revision", Value: "0123"}}, "devel"},
	} {
		if got := of(&debug.BuildInfo{Main: debug.Module{Version: tt.module}, Settings: tt.settings}); got != tt.want {
			t.Errorf("module %q: %q, want %q", tt.module, got, tt.want)
		}
	}
}
