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
)

// children are what this binary does as another process: one that is killed,
// or that may not write as much as it wants.
var children = map[string]func(path string) error{"count": count}

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
