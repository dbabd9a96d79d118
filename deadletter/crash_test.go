package deadletter

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// children are what this binary does as another process: one that is killed,
// or that may not write as much as it wants.
var children = map[string]func(path string) error{"count": count, "redrive": redriveAndHang, "purge": purgeAndHang}

const (
	childEnv = "DEADLETTER_TEST_CHILD"
	pathEnv  = "DEADLETTER_TEST_PATH"
)

func TestMain(m *testing.M) {
	if run := children[os.Getenv(childEnv)]; run != nil {
		if err := run(os.Getenv(pathEnv)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child prepares another process.
func child(name, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+name, pathEnv+"="+path)
	return cmd
}

// count stores one letter after another, each in the place of one that it
// deletes, and says so, until it is killed.
func count(path string) error {
	f, err := OpenFile(path)
	if err != nil {
		return err
	}
	letters, err := f.ListLetters(context.Background(), "app", "", 1<<20)
	if err != nil {
		return err
	}
	n := 0
	for _, l := range letters {
		n, _ = strconv.Atoi(l.ID)
	}
	for {
		n++
		if err := f.PutLetter(context.Background(), "app", fmt.Sprintf("%06d", n), make([]byte, n%5000)); err != nil {
			return err
		}
		fmt.Println("stored", n)
		if err := f.DeleteLetter(context.Background(), "app", fmt.Sprintf("%06d", n-1)); err != nil {
			return err
		}
	}
}

// A process that is killed at any moment, also while it compacts the file, has
// stored all that it said it had.
func TestFileOfAKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	said := 0
	for round := range 20 {
		cmd := child("count", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		read := func() bool {
			if !lines.Scan() {
				return false
			}
			if said, err = strconv.Atoi(strings.TrimPrefix(lines.Text(), "stored ")); err != nil {
				t.Fatalf("the other process: %s", lines.Text())
			}
			return true
		}
		for range rand.IntN(1 + round*2) {
			read()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for read() {
		}
		_ = cmd.Wait()

		f := openFile(t, path)
		letters, err := f.ListLetters(t.Context(), "app", "", 100)
		if err != nil || len(letters) == 0 && said > 0 {
			t.Fatalf("round %d: %d was acknowledged; %d letters are stored, %v", round, said, len(letters), err)
		}
		if len(letters) > 0 {
			last := letters[len(letters)-1]
			n, _ := strconv.Atoi(last.ID)
			if n < said || n > said+1 || len(last.Data) != n%5000 {
				t.Fatalf("round %d: %d was acknowledged; the last is %d of %d bytes", round, said, n, len(last.Data))
			}
			said = n
		}
		f.Close()
	}
	if said == 0 {
		t.Error("nothing was ever stored")
	}
}

// hanging is told of each deletion, and never makes it from the nth on.
type hanging struct {
	*File
	n int
}

func (h *hanging) DeleteLetter(ctx context.Context, app, id string) error {
	if h.n--; h.n < 0 {
		fmt.Println("deleting", id)
		select {}
	}
	return h.File.DeleteLetter(ctx, app, id)
}

func redriveAndHang(path string) error {
	f, err := OpenFile(path)
	if err != nil {
		return err
	}
	m := anyMatcher{{Name: "r", Redrive: true, Handler: func(_ context.Context, rec *sluice.Record) error {
		fmt.Println("handled", recordtest.Nth(rec.Sequence))
		return nil
	}}}
	_, err = NewBox(&hanging{f, 1}, "app").RedriveAll(context.Background(), m, Filter{}, How{})
	return err
}

func purgeAndHang(path string) error {
	f, err := OpenFile(path)
	if err != nil {
		return err
	}
	_, err = NewBox(&hanging{f, 1}, "app").Purge(context.Background(), Filter{Route: "r"}, false)
	return err
}

// killed runs a child until it says a line with this prefix, and kills it.
func killed(t *testing.T, name, path, prefix string) (said []string) {
	t.Helper()
	cmd := child(name, path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if strings.HasPrefix(lines.Text(), prefix) {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return said
}

// A process that dies between a handler's success and the deletion repeats the
// entry, and loses none.
func TestKilledRedriveRepeats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	for n := range 3 {
		park(t, NewBox(f, "app"), record("a", n+1), "r")
	}
	f.Close()
	said := killed(t, "redrive", path, "deleting")
	if len(said) != 3 || said[0] != "handled 1" || said[1] != "handled 2" {
		t.Fatalf("the other process: %q", said)
	}
	f = openFile(t, path)
	b := NewBox(f, "app")
	if got := list(t, b); len(got) != 2 {
		t.Errorf("left: %v", got)
	}
	var c calls
	r, err := b.RedriveAll(t.Context(), anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}}, Filter{}, How{})
	if err != nil || r.Done != 2 || fmt.Sprint(c.got) != "[2 redriven 3 redriven]" {
		t.Errorf("%+v, %v, ran %v", r, err, c.got)
	}
}

// A purge that dies has deleted some, and nothing that was not to be deleted.
func TestKilledPurge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.ndjson")
	f := openFile(t, path)
	for n := range 3 {
		park(t, NewBox(f, "app"), record("a", n+1), "r")
	}
	park(t, NewBox(f, "app"), record("a", 2), "s")
	f.Close()
	killed(t, "purge", path, "deleting")
	f = openFile(t, path)
	b := NewBox(f, "app")
	if got := fmt.Sprint(list(t, b)); !strings.Contains(got, "2/s") || len(list(t, b)) != 3 {
		t.Errorf("left: %v", got)
	}
	if n, err := b.Purge(t.Context(), Filter{Route: "r"}, false); n != 2 || err != nil {
		t.Errorf("the rest: %d, %v", n, err)
	}
}
