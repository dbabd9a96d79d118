package checks

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
)

// grace is the default of daemon.grace: everything that stops a daemon waits longer.
const grace = 25 * time.Second

func TestGraceIsTheDaemons(t *testing.T) {
	var o daemon.Options
	o.AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
	if o.Grace != grace {
		t.Errorf("the daemon's grace is %v, and everything in deploy/ waits as if it were %v", o.Grace, grace)
	}
}

func TestTheDaemonTakesTheConfigurationOfCompose(t *testing.T) {
	if _, err := config.Load(filepath.Join(deploy, "compose/sluice.yaml"), func(string) (string, bool) { return "", false }); err != nil {
		t.Error(err)
	}
}
