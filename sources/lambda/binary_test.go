package lambda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

// buildFunction compiles testdata/function once, as a user builds a function.
var buildFunction = sync.OnceValues(func() (string, error) {
	// Read here, it is an input of the tests' cached result.
	if _, err := os.ReadFile("testdata/function/main.go"); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "sluice-function-")
	if err != nil {
		return "", err
	}
	functionDir = dir
	bin := filepath.Join(dir, "bootstrap")
	args := []string{"build", "-tags", "lambda.norpc", "-o", bin}
	if raceEnabled {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "./testdata/function")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the function: %w\n%s", err, out)
	}
	return bin, nil
})

var functionDir string // removed by TestMain

// function is the built function in a process of its own.
type function struct {
	*runtimeapi.Function
	t      *testing.T
	notes  string
	stderr *syncBuffer
}

func startFunction(t *testing.T, c runtimeapi.Command) *function {
	t.Helper()
	bin, err := buildFunction()
	if err != nil {
		t.Fatal(err)
	}
	f := &function{t: t, notes: filepath.Join(t.TempDir(), "notes"), stderr: new(syncBuffer)}
	c.Path = bin
	c.Env = append(c.Env, "NOTES="+f.notes)
	c.Stderr = f.stderr
	if f.Function, err = runtimeapi.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Kill() //nolint:errcheck // it may have ended by itself
		if t.Failed() || strings.Contains(f.stderr.String(), "DATA RACE") {
			t.Errorf("the function wrote:\n%s", f.stderr.String())
		}
	})
	return f
}

// answer invokes the function and returns its answer, or the type and message
// of its error.
func (f *function) answer(payload []byte) string {
	f.t.Helper()
	a, err := f.Invoke(f.t.Context(), payload, localtest.Patience)
	if err != nil {
		f.t.Fatal(err)
	}
	if a.Failed {
		return a.ErrorType + ": " + a.Message
	}
	return string(a.Payload)
}

// take returns the notes since the last take.
func (f *function) take() []string {
	f.t.Helper()
	data, err := os.ReadFile(f.notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Fatal(err)
	}
	os.Remove(f.notes) //nolint:errcheck // may not exist
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// Every shape goes through one process, accepted and refused ones in turn.
func TestBinaryTakesEveryShape(t *testing.T) {
	t.Parallel()
	f := startFunction(t, runtimeapi.Command{})
	for i, s := range shapes {
		if got := besideState(t, f.answer(readFixture(t, "events", s.file)), s.file); got != allDone {
			t.Errorf("%s: answer %s", s.file, got)
		}
		var want []string
		for seq := range strings.FieldsSeq(s.records) {
			want = append(want, "handled "+seq)
		}
		got := f.take()
		slices.Sort(got) // items run concurrently
		if strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("%s: notes %q, want %q", s.file, got, want)
		}
		if i >= len(refused) {
			continue
		}
		r := refused[i]
		got = []string{f.answer(readFixture(t, "refused", r.file))}
		if !strings.HasPrefix(got[0], "EnvelopeError: ") || !strings.Contains(strings.ToLower(got[0]), strings.ToLower(r.want)) {
			t.Errorf("%s: answer %s, want an error that says %q", r.file, got[0], r.want)
		}
		if got := f.take(); got[0] != "" {
			t.Errorf("%s: handled %q", r.file, got)
		}
	}
}

// Failures leave the process fit for the next invocation.
func TestBinaryGoesOnAfterFailures(t *testing.T) {
	t.Parallel()
	f := startFunction(t, runtimeapi.Command{})
	for _, tt := range []struct {
		do    string // of records 8, 9, 10, … of one item
		want  string
		notes string
	}{
		{"ok ok ok", allDone, "handled 8,handled 9,handled 10"},
		{"ok fail ok", failsFrom(9), "handled 8,failed 9"},
		{"ok ok panic", failsFrom(10), "handled 8,handled 9"},
		{"panic", failsFrom(8), ""},
		{"fail", failsFrom(8), "failed 8"},
		{"ok", allDone, "handled 8"},
	} {
		var batch []change
		for i, what := range strings.Fields(tt.do) {
			batch = append(batch, change{seq: 8 + i, do: what})
		}
		if got := f.answer(event(batch...)); got != tt.want {
			t.Errorf("%s: answer %s, want %s", tt.do, got, tt.want)
		}
		if got := short(strings.Join(f.take(), ",")); got != tt.notes {
			t.Errorf("%s: notes %s, want %s", tt.do, got, tt.notes)
		}
	}
	localtest.Await(t, "the panic's stack is in the log", func() string { // another goroutine reads it
		logged := f.stderr.String()
		if !strings.Contains(logged, "told to panic") || !strings.Contains(logged, "main.go") {
			return logged
		}
		return ""
	})
}

func TestBinaryAnswersBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	f := startFunction(t, runtimeapi.Command{Env: []string{"MARGIN=1h"}}) // half of the time given
	a, err := f.Invoke(t.Context(), event(change{seq: 1}, change{seq: 2, do: "wait"}, change{seq: 3}), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(a.Payload); got != failsFrom(2) {
		t.Errorf("answer %s", got)
	}
	if got := f.answer(event(change{seq: 2}, change{seq: 3})); got != allDone {
		t.Errorf("answer %s", got)
	}
	if got := short(strings.Join(f.take(), ",")); got != "handled 1,handled 2,handled 3" {
		t.Errorf("notes %s", got)
	}
}

// A handler that never returns: its invocation is answered, the next one fails
// and ends the process, and a fresh process goes on.
func TestBinaryEndsWhenAHandlerIsStuck(t *testing.T) {
	t.Parallel()
	f := startFunction(t, runtimeapi.Command{Env: []string{"MARGIN=1h", "STUCK_WAIT=10ms"}})
	a, err := f.Invoke(t.Context(), event(change{seq: 1}, change{seq: 2, do: "stuck"}), 10*time.Second)
	if err != nil || string(a.Payload) != failsFrom(2) {
		t.Fatalf("answer %s, error %v", a.Payload, err)
	}
	if got := f.answer(event(change{seq: 2})); !strings.HasPrefix(got, "StuckHandler: ") {
		t.Errorf("answer %s", got)
	}
	<-f.Exited()
	state, err := f.Stop()
	if err != nil || state.ExitCode() != 1 {
		t.Errorf("ended with %v, error %v", state, err)
	}
	if got := short(strings.Join(f.take(), ",")); got != "handled 1" {
		t.Errorf("notes %s", got)
	}
}

// A process that dies in the middle of a batch loses nothing: the whole batch comes
// again, with the handled records.
func TestBinaryDiesInABatch(t *testing.T) {
	t.Parallel()
	f := startFunction(t, runtimeapi.Command{})
	if _, err := f.Invoke(t.Context(), event(change{seq: 1}, change{seq: 2, do: "exit"}), localtest.Patience); !errors.Is(err, runtimeapi.ErrExited) {
		t.Fatalf("error %v, want %v", err, runtimeapi.ErrExited)
	}
	if got := short(strings.Join(f.take(), ",")); got != "handled 1,exited 2" {
		t.Errorf("notes %s", got)
	}
	f = startFunction(t, runtimeapi.Command{})
	if got := f.answer(event(change{seq: 1}, change{seq: 2})); got != allDone {
		t.Errorf("answer %s", got)
	}
}

func TestBinaryConcurrentInvocations(t *testing.T) {
	t.Parallel()
	f := startFunction(t, runtimeapi.Command{MaxConcurrency: 4})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				seq, what, want := 100*i+2*j+1, "quiet", allDone
				if j%3 == 0 {
					what, want = "panic", failsFrom(seq+1)
				}
				a, err := f.Invoke(t.Context(), event(change{seq: seq, do: "quiet"}, change{seq: seq + 1, do: what}), localtest.Patience)
				if err != nil || string(a.Payload) != want {
					t.Errorf("answer %s, error %v; want %s", a.Payload, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// After 1,000 invocations the memory is as after the first hundred.
func TestBinaryMemoryIsFlat(t *testing.T) {
	t.Parallel()
	if localtest.Elsewhere(t) {
		return
	}
	f := startFunction(t, runtimeapi.Command{})
	var batch []change
	for i := range 100 {
		batch = append(batch, change{item: fmt.Sprint(i % 30), seq: 1000 + i, do: "quiet", pad: 500})
	}
	good := event(batch...)
	batch[60].do = "panic"
	bad := event(batch...)
	run := func(n int) (heap, goroutines int) {
		for i := range n {
			payload, want := good, allDone
			if i%100 == 99 { // a panic logs its stack; 10 of them are enough
				payload, want = bad, failsFrom(1060)
			}
			if got := f.answer(payload); got != want {
				t.Fatalf("answer %s, want %s", got, want)
			}
		}
		f.answer(event(change{seq: 1, do: "report"}))
		note := f.take()[0]
		if _, err := fmt.Sscanf(note, "heap %d goroutines %d", &heap, &goroutines); err != nil {
			t.Fatalf("note %q: %v", note, err)
		}
		return heap, goroutines
	}
	heap0, goroutines0 := run(100)
	heap1, goroutines1 := run(900)
	if heap1 > heap0+256<<10 {
		t.Errorf("heap grew from %d to %d bytes", heap0, heap1)
	}
	if goroutines1 > goroutines0 {
		t.Errorf("goroutines grew from %d to %d", goroutines0, goroutines1)
	}
}

func TestBinaryIsToldOfItsEndOnlyWhenItAsks(t *testing.T) {
	t.Parallel()
	f := startFunction(t, runtimeapi.Command{Env: []string{"SIGTERM=1", "GORACE=atexit_sleep_ms=0"}}) // else the race detector sleeps for a second before it exits
	f.answer(event(change{seq: 1, do: "quiet"}))
	if state, err := f.Stop(); err != nil || state.ExitCode() != 0 {
		t.Errorf("ended with %v, error %v", state, err)
	}
	if got := short(strings.Join(f.take(), ",")); got != "terminated" {
		t.Errorf("notes %s", got)
	}

	f = startFunction(t, runtimeapi.Command{})
	f.answer(event(change{seq: 1, do: "quiet"}))
	if state, err := f.Stop(); err != nil || state.ExitCode() != -1 {
		t.Errorf("ended with %v, error %v; want it killed", state, err)
	}
}
