package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/run"
)

func TestApp(t *testing.T) {
	for queue, want := range map[string]string{
		"":  "estuve [x-users x-maps x-points] []",
		"q": "estuve [x-users x-maps x-points] [q]",
	} {
		env := map[string]string{"ESTUVE_PREFIX": "x-", "ESTUVE_QUEUE": queue}
		a := app(func(name string) string { return env[name] })
		if got := fmt.Sprint(a.Name, " ", a.Tables, " ", a.Queues); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The worker's error names an existing program.
func TestWorkerRefuses(t *testing.T) {
	const again = "\nestuve: run \"estuve worker --help\"\n"
	for _, tt := range []struct {
		args, queue string
		exit        int
		want        string
	}{
		{"--state w.db", "", 2, "estuve: ESTUVE_QUEUE is not set: set it to the URL or the name of the queue of cascades" + again},
		{"--queue q", "", 2, "estuve: ESTUVE_QUEUE is not set: set it to the URL or the name of the queue of cascades" + again},
		{"--table maps", "q", 2, "estuve: --table: a worker reads no table; leave the flag out, or run estuve without worker" + again},
		{"--quue q", "q", 2, "estuve worker: unknown flag: --quue\nestuve worker: run \"estuve worker --help\"\n"},
		{"--grace 1ms", "q", 2, "estuve worker: --grace (SLUICE_GRACE): 1ms is too short to store the positions: at least 1s\nestuve worker: run \"estuve worker --help\"\n"},
		{"dlq", "q", 2, "estuve worker: this program has one command, dlq redrive: estuve worker dlq redrive --help\nestuve worker: run \"estuve worker dlq redrive --help\"\n"},
		{"--help", "", 0, ""},
	} {
		var out, failed strings.Builder
		env := map[string]string{"ESTUVE_QUEUE": tt.queue}
		exit := worker(t.Context(), strings.Fields(tt.args), func(name string) string { return env[name] }, &out, &failed)
		if exit != tt.exit || failed.String() != tt.want {
			t.Errorf("%s: %d, %s", tt.args, exit, failed.String())
		}
		if help := out.String(); tt.exit == 0 && (!strings.HasPrefix(help, "estuve worker works off the queue of ESTUVE_QUEUE") || strings.Contains(help, "--table") || !strings.Contains(help, "--state file")) {
			t.Errorf("%s: %s", tt.args, help)
		}
	}
}

// Without ESTUVE_QUEUE no route takes messages: a queue that is consumed all the
// same would lose its cascades.
func TestQueueWithoutRoute(t *testing.T) {
	_, err := routes(t.Context(), run.Setup{Queues: []string{"jobs"}, Env: func(string) string { return "" }})
	if err == nil || err.Error() != "--queue (SLUICE_QUEUES) names jobs, and ESTUVE_QUEUE is not set: set it to the queue of cascades" {
		t.Error(err)
	}
}
