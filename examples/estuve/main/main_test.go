package main

import (
	"fmt"
	"testing"
)

func TestApp(t *testing.T) {
	for _, tt := range []struct {
		queue string
		args  []string
		want  string
	}{
		{"", nil, "estuve [x-users x-maps x-points] [] []"},
		{"q", []string{"--start", "LATEST"}, "estuve [x-users x-maps x-points] [q] [--start LATEST]"},
		{"q", []string{"worker", "--state", "w.db"}, "estuve-worker [] [q] [--state w.db]"},
	} {
		env := map[string]string{"ESTUVE_PREFIX": "x-", "ESTUVE_QUEUE": tt.queue}
		a, args := app(func(name string) string { return env[name] }, tt.args)
		if got := fmt.Sprint(a.Name, " ", a.Tables, " ", a.Queues, " ", args); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}
