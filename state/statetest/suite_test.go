package statetest_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/statetest"
)

// faults are the ways in which a store can break its contract, and which test
// of the suite finds it out.
var faults = []struct{ fault, foundBy string }{
	{"a start replaces another", "start"},
	{"a refused start is stored", "start refused"},
	{"starts lose their fractions", "start"},
	{"starts are not conditional writes", "start of one of many"},
	{"names may be empty", "names are required"},
	{"claims keep the epoch", "claim"},
	{"a parent that is not named is forgotten", "epoch of a child"},
	{"a child's epoch is its own", "epoch of a child"},
	{"claims erase the position", "claim leaves the position"},
	{"claims take from the living", "claim of a living owner's shard"},
	{"claims take from the living", "claim of one of many"},
	{"a refused claim raises the epoch", "claim of a living owner's shard"},
	{"no error is a list of nils", "checkpoint"},
	{"checkpoints look at the owner only", "checkpoint under a lost lease"},
	{"a checkpoint makes the row", "checkpoint of a shard that is not stored"},
	{"positions go back", "checkpoint before the stored one"},
	{"positions are compared as text", "checkpoint before the stored one"},
	{"what is settled ahead is forgotten", "checkpoint of records settled ahead"},
	{"what is settled ahead is kept", "checkpoint of records settled ahead"},
	{"positions may be anything", "checkpoint of what is no sequence number"},
	{"one checkpoint hinders the others", "checkpoint of many"},
	{"a finished shard is opened again", "end of a shard"},
	{"the end forgets the position", "end of a shard"},
	{"finish finishes stored shards", "finish"},
	{"nothing is forgotten", "forget"},
	{"unfinished shards are forgotten", "forget"},
	{"held shards are forgotten", "forget"},
	{"what is not stored cannot be forgotten", "forget"},
	{"a forgotten shard keeps its row", "forget"},
	{"the start is forgotten", "forget"},
	{"shards are forgotten in every stream", "forgotten shards of applications and streams are apart"},
	{"children of the forgotten are forgotten", "claim of a forgotten shard"},
	{"streams are those with a start", "streams"},
	{"a released shard keeps its owner", "release"},
	{"a released shard forgets its epoch", "release"},
	{"anybody may release", "checkpoint under a lost lease"},
	{"applications share rows", "applications and streams are apart"},
	{"names run into one another", "applications and streams are apart"},
	{"a listing is its first page", "hundreds at once"},
	{"a hundred checkpoints at most", "hundreds at once"},
	{"checkpoints are not conditional writes", "checkpoints at the same time"},
	{"checkpoints are not conditional writes", "claim beside checkpoints"},
	{"the shards of a stream are one row", "concurrent use"},
	{"cancelled calls are made", "cancelled"},
	{"a letter is never replaced", "letters"},
	{"letters are not apart", "letters of applications are apart"},
	{"letters are shared", "letters are copied"},
	{"letters are text", "letters of any bytes and size"},
	{"ids are ordered without case", "letters of any bytes and size"},
	{"pages overlap", "letters in pages"},
	{"cancelled calls are made", "letters, cancelled"},
	{"labels outlive their letters", "labels"},
	{"a letter keeps its label when it is replaced", "labels"},
	{"labels are not apart", "labels"},
	{"labelled letters are labelled again", "labels"},
	{"a value is never replaced", "values"},
	{"values may be anything", "values"},
	{"values are not apart", "values of applications are apart, and from letters"},
	{"values are letters", "values of applications are apart, and from letters"},
	{"values are shared", "values are copied"},
	{"a prefix is where to begin", "values by prefix"},
	{"values are not stored one by one", "values at the same time"},
	{"cancelled calls are made", "values, cancelled"},
	{"nothing survives", "after a restart"},

	{"owners live for ever", owners},
	{"claims are no sign of life", owners},
	{"heartbeats do nothing", owners},
	{"owners' shards are kept for ever", owners},
	{"nobody is fenced", owners},
	{"who is silent is fenced", owners},
	{"the fenced may beat", owners},
	{"the fenced may claim", owners},
}

const (
	owners   = "owners"
	faultEnv = "STATETEST_FAULT"
)

// TestSuite runs the suite over a store that keeps the contract, or breaks it
// in the way that its environment names.
func TestSuite(t *testing.T) {
	statetest.RunDurable(t, func(*testing.T) func() state.Store {
		s := newStore(os.Getenv(faultEnv))
		return func() state.Store { return s }
	})
	t.Run(owners, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			statetest.Owners(t, newStore(os.Getenv(faultEnv)), staterules.OwnerTimeout, time.Sleep)
		})
	})
}

// Every rule of the contract is held: of a store that breaks one the suite says
// so, by the test that is named for it; and every test of the suite finds
// something.
func TestSuiteFindsFaults(t *testing.T) {
	run := func(fault, test string) string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSuite$/"+test, "-test.v")
		cmd.Env = append(os.Environ(), faultEnv+"="+fault)
		out, _ := cmd.CombinedOutput() // it fails, as it should
		return string(out)
	}
	line := func(result, test string) string {
		return "--- " + result + ": TestSuite/" + strings.ReplaceAll(test, " ", "_") + " ("
	}
	sound := run("", "")
	for _, f := range faults {
		name := strings.ReplaceAll(f.foundBy, " ", "_")
		if said := run(f.fault, "^"+regexp.QuoteMeta(name)+"$"); !strings.Contains(said, line("FAIL", f.foundBy)) {
			t.Errorf("%q: %q did not fail", f.fault, f.foundBy)
		}
		sound = strings.ReplaceAll(sound, line("PASS", f.foundBy), "")
	}
	for l := range strings.Lines(sound) {
		if strings.Contains(l, "TestSuite/") && strings.Contains(l, "---") {
			t.Errorf("no fault is found by %s", l)
		}
	}
}
