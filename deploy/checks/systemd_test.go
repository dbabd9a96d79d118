package checks

import (
	"strings"
	"testing"
	"time"
)

// unit is a unit's settings by "Section.Name", and a list because some repeat.
func unit(t *testing.T, path ...string) map[string][]string {
	t.Helper()
	all, section := map[string][]string{}, ""
	for line := range strings.Lines(read(t, path...)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
		default:
			name, value, ok := strings.Cut(line, "=")
			if !ok || section == "" {
				t.Fatalf("%v: %q is no setting", path, line)
			}
			all[section+"."+name] = append(all[section+"."+name], value)
		}
	}
	return all
}

func TestSystemdUnit(t *testing.T) {
	u := unit(t, deploy, "systemd/sluice.service")
	for name, want := range map[string]string{
		"Service.ExecStart":                "/usr/local/bin/sluice run --config /etc/sluice/sluice.yaml",
		"Service.Environment":              "SLUICE_STATE=/var/lib/sluice/state.db",
		"Service.Restart":                  "on-failure",
		"Service.RestartPreventExitStatus": "2",
		"Service.DynamicUser":              "yes",
		"Service.StateDirectory":           "sluice",
		"Service.ProtectSystem":            "strict",
		"Service.NoNewPrivileges":          "yes",
		"Service.CapabilityBoundingSet":    "",
		"Install.WantedBy":                 "multi-user.target",
	} {
		if got := u[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	stop, err := time.ParseDuration(u["Service.TimeoutStopSec"][0])
	if err != nil || stop < grace+10*time.Second {
		t.Errorf("TimeoutStopSec is %v, want more than the grace of %v: %v", stop, grace, err)
	}
}
