package localtest

import (
	"testing"
	"time"
)

// Patience is how long a test bears that nothing at all changes: on a machine
// with much to do, servers stand still for minutes.
const Patience = 10 * time.Minute

// Await waits until missing, which describes what is not ready yet, returns "". It
// fails the test after Patience without a change of the description. While the
// description changes, it waits on, up to go test's own -timeout. With a backlog,
// let missing count the handled records.
func Await(t testing.TB, what string, missing func() string) {
	t.Helper()
	if last, ok := await(missing); !ok {
		t.Fatalf("%s: nothing has changed for %v: %s", what, Patience, last)
	}
}

func await(missing func() string) (last string, ok bool) {
	changed := time.Now()
	for {
		now := missing()
		switch {
		case now == "":
			return "", true
		case now != last:
			last, changed = now, time.Now()
		case time.Since(changed) >= Patience:
			return last, false
		}
		time.Sleep(50 * time.Millisecond) // what it waits for is done by others
	}
}
