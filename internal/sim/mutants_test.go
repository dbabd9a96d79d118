//go:build integration

package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
)

const (
	manySeeds   = 100 // that TestSeeds runs
	mutantSeeds = 600 // until one must have caught a mutant
	fleetSeeds  = 150 // likewise, of a fleet
)

// TestSeeds runs many histories without the race detector, new ones in each run. TestSim
// runs the fixed seeds.
func TestSeeds(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	from := uint64(time.Now().UnixMilli())
	sum := runSeeds(t, os.Args[0], from, manySeeds, false)
	for _, r := range sum.failed {
		t.Errorf("seed %d: %v\n%s\nTo run it again: make sim SEED=%d", r.Seed, r.Violations[0], r.Trace, r.Seed)
	}
	t.Logf("%v. To run them again: make sim FROM=%d SEEDS=%d", sum, from, manySeeds)
}

// TestFleetSeeds runs the simulation of a fleet in the same way. The test of its name in
// state/dynamostate runs the fixed seeds.
func TestFleetSeeds(t *testing.T) {
	const pkg, many = "../../state/dynamostate", 20
	bin := filepath.Join(t.TempDir(), "fleet.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-o", bin, pkg).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	from := time.Now().UnixMilli()
	cmd := exec.Command(bin, "-test.run=^TestFleetSeeds$", "-test.timeout=0", fmt.Sprint("-seed=", from), fmt.Sprint("-seeds=", many))
	cmd.Dir = pkg
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("To run them again: make sim FLEET=1 FROM=%d SEEDS=%d", from, many)
}

// mutant is a change that breaks a promise of the poller.
type mutant struct {
	name  string
	file  string // in the module
	old   string // occurs exactly once
	new   string
	props []string // one of them fails
	of    *uint64  // kind of seeds that it takes, if they are rare
	from  uint64   // the seed to begin with, if few catch it
	test  string   // that fails, in the package of the file or in pkg, if not the simulation
	pkg   string
}

// TestMutants breaks the poller, and what it stands on, in one place at a time,
// and holds the simulation to noticing it. Nothing in the tree is changed: go's
// -overlay puts the broken file in the place of the real one.
//
// Those of fleetMutants are for the simulation of a fleet, in state/dynamostate, and
// those of testedMutants for single tests, of what a history seldom shows.
//
// A mutant costs seconds, so that each run takes another; TestProofMutants and those
// beside it take all.
func TestMutants(t *testing.T) {
	lists := []struct {
		caught func(m mutant, dir, root string) (string, error)
		of     []mutant
	}{{mutant.caught, mutants}, {mutant.caughtByFleet, fleetMutants}, {mutant.caughtByTest, testedMutants}}
	n := rand.IntN(len(mutants) + len(fleetMutants) + len(testedMutants))
	for _, list := range lists {
		if n < len(list.of) {
			areCaughtBy(t, list.caught, list.of[n:n+1])
			return
		}
		n -= len(list.of)
	}
}

// Each mutant is of the code as it is.
func TestMutantsFit(t *testing.T) {
	names := map[string]bool{}
	for _, m := range slices.Concat(mutants, fleetMutants, testedMutants) {
		if names[m.name] {
			t.Errorf("two mutants are named %q", m.name)
		}
		names[m.name] = true
		if _, err := m.broken("../.."); err != nil {
			t.Errorf("%s: %s: %v", m.name, m.file, err)
		}
	}
}

func areCaughtBy(t *testing.T, caught func(m mutant, dir, root string) (string, error), some []mutant) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range some {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			how, err := caught(m, t.TempDir(), root)
			if err != nil {
				t.Fatalf("%s: %v", m.file, err)
			}
			t.Log(how)
		})
	}
}

// caught builds the simulation with the mutant in it, and runs seeds until one
// fails as it should. It says how it did.
func (m mutant) caught(dir, root string) (how string, err error) {
	bin, err := m.build(dir, root, "./internal/sim")
	if err != nil {
		return "", err
	}
	p, err := startProcess(bin)
	if err != nil {
		return "", err
	}
	defer func() { p.kill() }()
	others := map[string]int{}
	for n := range uint64(mutantSeeds) {
		seed := max(m.from, 1) + n
		if m.of != nil {
			seed = seed*kindEvery + *m.of
		}
		r, over := p.run(seed)
		for _, v := range r.Violations {
			if slices.Contains(m.props, v.Prop) {
				return fmt.Sprintf("seed %d: %.150s", r.Seed, v), nil
			}
			others[v.Prop]++
		}
		if over {
			if p, err = startProcess(bin); err != nil {
				return "", err
			}
		}
	}
	return "", fmt.Errorf("survives %d seeds: want that %s fails; what failed else: %v", mutantSeeds, strings.Join(m.props, " or "), others)
}

// caughtByFleet does the same with the simulation of a fleet. Any property may fail.
func (m mutant) caughtByFleet(dir, root string) (how string, err error) {
	bin, err := m.build(dir, root, "./state/dynamostate")
	if err != nil {
		return "", err
	}
	const few = 5 // that run side by side, so that the first to fail ends the rest
	for n := uint64(0); n < fleetSeeds; n += few {
		cmd := exec.Command(bin, "-test.run=^TestFleetSeeds$", "-test.timeout=0", fmt.Sprint("-seed=", max(m.from, 1)+n), fmt.Sprint("-seeds=", few))
		cmd.Dir = filepath.Join(root, "state", "dynamostate")
		out, err := cmd.CombinedOutput()
		if err == nil {
			continue
		}
		_, found, ok := strings.Cut(string(out), "sim_test.go:")
		if !ok {
			return "", fmt.Errorf("%w: %.2000s", err, out)
		}
		return fmt.Sprintf("of the seeds from %d: %.300s", max(m.from, 1)+n, found), nil
	}
	return "", fmt.Errorf("survives %d seeds", fleetSeeds)
}

// caughtByTest does the same with one test.
func (m mutant) caughtByTest(dir, root string) (how string, err error) {
	pkg := cmp.Or(m.pkg, filepath.Dir(m.file))
	bin, err := m.build(dir, root, "./"+pkg)
	if err != nil {
		return "", err
	}
	cmd := exec.Command(bin, "-test.run=^"+m.test+"$")
	cmd.Dir = filepath.Join(root, pkg)
	out, err := cmd.CombinedOutput()
	if failed := "--- FAIL: " + m.test; err == nil || !strings.Contains(string(out), failed) {
		return "", fmt.Errorf("want %q: %w: %.2000s", failed, err, out)
	}
	return fmt.Sprintf("%.200s", out), nil
}

// broken returns the mutant's file, broken.
func (m mutant) broken(root string) (string, error) {
	src, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(src), m.old); n != 1 {
		return "", fmt.Errorf("the text to be replaced occurs %d times: bring the mutant up to date:\n%s", n, m.old)
	}
	return strings.Replace(string(src), m.old, m.new, 1), nil
}

// build makes the test binary of a package with the mutant in it.
func (m mutant) build(dir, root, pkg string) (string, error) {
	src, err := m.broken(root)
	if err != nil {
		return "", err
	}
	broken, overlay, bin := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	if err := os.WriteFile(broken, []byte(src), 0o644); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): broken}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, data, 0o644); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "test", "-c", "-tags=long", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", bin, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not compile: %w\n%s", err, out)
	}
	return bin, nil
}
