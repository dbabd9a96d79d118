package lambda

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

// Every shape in which an event of a stream is documented or was recorded.
var shapes = []struct {
	file    string
	records string // sequence numbers handled
	from    string // answer when the last record fails
}{
	{"usual", "900100000000001234500000001 900100000000001234500000002 900100000000001234500000003", "900100000000001234500000003"},
	{"no-time", "900100000000001234500000101 900100000000001234500000102", "900100000000001234500000102"},
	{"float-time", "900100000000001234500000101 900100000000001234500000102", "900100000000001234500000102"},
	{"exponent-time", "900100000000001234500000101 900100000000001234500000102 900100000000001234500000103", "900100000000001234500000103"},
	{"string-time", "900100000000001234500000101", "900100000000001234500000101"},
	{"milliseconds-time", "900100000000001234500000101", "900100000000001234500000101"},
	{"same-sequence", "900100000000001234500000042 900100000000001234500000042", "900100000000001234500000042"},
	{"ttl", "900100000000001234500000101 900100000000001234500000102", "900100000000001234500000102"},
	{"placeholder-arn", "111 222", "222"}, // the console's own test event, with its short numbers
	{"mixed-views", "900100000000001234500000101 900100000000001234500000102", "900100000000001234500000102"},
	{"no-identity", "900100000000001234500000101 900100000000001234500000102", "900100000000001234500000102"},
	{"empty", "", ""},
	{"pipes", "42600004062755084192341 42600004062755084192348", "evt-2"},
	{"pipes-empty", "", ""},
	{"window", "977119800000398701107540001 977119800000398701107540002 977119800000398701107540014", "977119800000398701107540014"},
	{"window-state-first", "900100000000001234500000101", "900100000000001234500000101"},
	{"window-final", "", ""},
}

// states are those of the windows among them, as the files spell them.
var states = map[string]string{
	"window":             windowState,
	"window-final":       windowState,
	"window-state-first": `{}`,
}

const windowState = `{
    "1": 282,
    "name": "\u00c4\"\\\\"
  }`

func readFixture(t testing.TB, dir, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", dir, file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestShapes(t *testing.T) {
	files, err := os.ReadDir("testdata/events")
	if err != nil || len(files) != len(shapes) {
		t.Fatalf("%d fixtures, %d cases (%v)", len(files), len(shapes), err)
	}
	for _, s := range shapes {
		t.Run(s.file, func(t *testing.T) {
			var seen recorder
			want := strings.Fields(s.records)
			failLast := false
			h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error {
				seen.add(string(rec.Sequence))
				if failLast && rec.Image().Exists() && string(rec.Sequence) == want[len(want)-1] {
					return errBroken
				}
				return nil
			}), Options{Concurrency: 1, Logger: quiet()})
			payload := readFixture(t, "events", s.file)

			if got := besideState(t, invoke(t, t.Context(), h, payload), s.file); got != allDone {
				t.Errorf("answer %s, want %s", got, allDone)
			}
			if got := strings.Join(seen.take(), " "); got != s.records {
				t.Errorf("handled %s, want %s", got, s.records)
			}
			if len(want) == 0 {
				return
			}
			failLast = true
			if got := besideState(t, invoke(t, t.Context(), h, payload), s.file); got != failsFromID(s.from) {
				t.Errorf("answer %s, want %s", got, failsFromID(s.from))
			}
		})
	}
}

// besideState checks that a window's answer repeats the event's state byte by
// byte and returns the answer without it.
func besideState(t *testing.T, answer, file string) string {
	t.Helper()
	state, ok := states[file]
	if !ok {
		return answer
	}
	rest, ok := strings.CutPrefix(answer, `{"state":`+state+`,`)
	if !ok {
		t.Errorf("%s: answer %s does not repeat the state %s", file, answer, state)
	}
	return "{" + rest
}

// An event that is not of a stream is refused by name and fails the invocation.
var refused = []struct{ file, want string }{
	{"on-failure", "on-failure"},
	{"on-failure-s3", "on-failure"},
	{"single-record", "single"},
	{"answer", "answer"},
	{"get-records", "GetRecords"},
	{"kinesis", "aws:kinesis"},
	{"sqs-pipe", "aws:sqs"},
	{"empty-object", "Records"},
	{"null", "null"},
	{"string", "string"},
	{"records-object", "Records"},
	{"records-null", "Records"},
	{"truncated", "offset"},
	{"nothing", "empty"},
	{"trailing", "offset"},
}

func TestRefused(t *testing.T) {
	files, err := os.ReadDir("testdata/refused")
	if err != nil || len(files) != len(refused) {
		t.Fatalf("%d fixtures, %d cases (%v)", len(files), len(refused), err)
	}
	for _, r := range refused {
		t.Run(r.file, func(t *testing.T) {
			h := NewHandler(one(func(context.Context, *sluice.Record) error {
				t.Error("a handler was called")
				return nil
			}), Options{Logger: quiet()})
			answer, err := h.Invoke(t.Context(), readFixture(t, "refused", r.file))
			if err == nil {
				t.Fatalf("answer %s, want an error", answer)
			}
			if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(r.want)) {
				t.Errorf("error %q does not say %q", err, r.want)
			}
		})
	}
}
