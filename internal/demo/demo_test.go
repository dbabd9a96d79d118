package demo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	var got []string
	for _, c := range changes() {
		got = append(got, c.event+" "+c.entity+" "+c.key)
	}
	want := []string{
		"INSERT contact 89fa8f8 / contact",
		"INSERT contactMethod 89fa8f8 / 538235b",
		"INSERT contactMethod 89fa8f8 / 800e613",
		"INSERT search a271244 / search",
		"INSERT search 2ad6a19 / search",
		"INSERT searchAttempt a271244 / 1004c16",
		"MODIFY searchAttempt a271244 / 1004c16",
	}
	if !slices.Equal(got, want) {
		t.Errorf("changes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A pipe gets the same words without colours.
func TestScreenIsPlainInAPipe(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out, begin: time.Now()}
	s.title("2. The daemon")
	s.change("INSERT", "search", "a271244 / search")
	s.handled(handled{Route: "search#INSERT", Result: "done", Took: 1500 * time.Microsecond})
	s.handled(handled{Result: "unrouted"})
	s.sent(message{body: `{"step":0}`}, 12*time.Millisecond)
	got := out.String()
	if strings.Contains(got, "\x1b") {
		t.Errorf("escape sequences in %q", got)
	}
	for _, want := range []string{
		"\n2. The daemon\n",
		"INSERT  search         a271244 / search\n",
		"route     search#INSERT done in 1.5 ms\n",
		"no route  settled and counted\n",
		"queue     a message, 12.0 ms after the write\n",
		`{"step":0}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("output lacks %q:\n%s", want, got)
		}
	}
}

// What waits for an effect is told when nobody is there to bring it about.
func TestInBackground(t *testing.T) {
	waits := func(ctx context.Context) error { <-ctx.Done(); return nil }
	down := errors.New("no table")
	ctx, end := inBackground(t.Context(), waits, func(context.Context) error { return down })
	<-ctx.Done()
	end()
	if err := context.Cause(ctx); !errors.Is(err, down) {
		t.Errorf("it ended for %v", err)
	}
}
