//go:build integration

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/item"
)

func TestCommands(t *testing.T) {
	w := newWorld(t)
	w.put(w.name, manhunt.Fixtures()...)
	if got := w.command("open", "db3280c", "89fa8f8", "--id", "s2", "--metadata", `{"incident":"I-2"}`); got != "s2\n" {
		t.Error(got)
	}
	if got := strings.TrimSpace(w.command("open", "db3280c", "89fa8f8")); len(got) < 20 || w.search(got).Status != manhunt.Active {
		t.Errorf("opened %q", got)
	}
	if got := w.command("cancel", "s2", "--by", "ada", "--reason", "false alarm"); got != "canceled\n" {
		t.Error(got)
	}
	if s := w.search("s2"); s.Status != manhunt.Canceled || s.ResolvedBy != "ada" || s.Resolution != "false alarm" || s.Resolved == "" {
		t.Errorf("%+v", s)
	}
	if got := w.command("reopen", "s2"); got != "reopened\n" || w.search("s2").Status != manhunt.Active || w.search("s2").Resolution != "" {
		t.Errorf("%s, %+v", got, w.search("s2"))
	}
	if got := w.command("cancel", "s2", "--by", "ada", "--reason", "false alarm"); got != "canceled\n" {
		t.Error(got)
	}
	w.put(w.name, manhunt.Fixtures()[fxAttempted].With(item.String("SK", manhunt.AttemptID("a271244", 0, 0))))
	if got := w.command("answer", "a271244", "0", "yes"); got != "noted\n" {
		t.Error(got)
	}

	var steps struct{ Attempts []manhunt.Attempt }
	for step := range int64(5) {
		w.put(w.name, manhunt.Fixtures()[fxAttempted].With(item.String("PK", "s2"), item.String("SK", manhunt.AttemptID("s2", 0, step)), item.Number("step", fmt.Sprint(step))))
	}
	if err := json.Unmarshal([]byte(w.command("show", "search", "s2")), &steps); err != nil || len(steps.Attempts) != 5 {
		t.Fatalf("%v, %+v", err, steps)
	}
	for i, a := range steps.Attempts {
		if a.Step != int64(i) {
			t.Errorf("attempt %d is of step %d", i, a.Step)
		}
	}

	var page struct {
		Searches []manhunt.Search
		Next     string
	}
	var seen []string
	for args := []string{"show", "searches", "89fa8f8", "--limit", "1"}; ; args = append(args[:5], "--cursor", page.Next) {
		page.Next = ""
		if err := json.Unmarshal([]byte(w.command(args...)), &page); err != nil || len(page.Searches) != 1 {
			t.Fatalf("%v, %+v", err, page)
		}
		if seen = append(seen, page.Searches[0].ID); page.Next == "" {
			break
		}
	}
	if len(seen) != 3 || seen[0] != "a271244" {
		t.Errorf("searches %q", seen)
	}
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"show search a271244", []string{`"status": "active"`, `"incident": "I-1"`, `"response": "yes"`, `"respondedDatetime": "`}},
		{"show search s2", []string{`"resolvedBy": "ada"`}},
		{"show contact db3280c 89fa8f8", []string{`"name": "Zavier Curtis"`, `"destination": "z@example.com"`, `"destination": "+15550100"`}},
		{"show contact db3280c 89fa8f8 --limit 1", []string{`"next": "`}},
		{"show contacts db3280c", []string{`"id": "89fa8f8"`}},
		{"show searches 89fa8f8 --status canceled", []string{`"id": "s2"`}},
		{"show searches 89fa8f8 --before 2020", []string{`"id": "a271244"`}},
		{"show searches nobody", []string{`"searches": []`}},
	} {
		got := w.command(strings.Fields(tt.args)...)
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s\nwant %s", tt.args, got, want)
			}
		}
	}
	for args, want := range map[string]string{
		"open db3280c nobody":                  "domain db3280c has no contact nobody",
		"open other 89fa8f8":                   "domain other has no contact 89fa8f8",
		"open db3280c 89fa8f8 --id s2":         "there is a search s2, or something else with that id",
		"answer a271244 0 yes":                 "search a271244 has no attempt 0 in its round, or it was answered before",
		"answer nobody 0 yes":                  "there is no search nobody",
		"answer s2 0 yes":                      "search s2 is over: canceled at " + w.search("s2").Resolved + ` by "ada": "false alarm"`,
		"answer 2ad6a19 0 yes":                 "search 2ad6a19 is over: canceled",
		"cancel s2":                            "search s2 is over: canceled at " + w.search("s2").Resolved + ` by "ada": "false alarm"`,
		"cancel nobody":                        "there is no search nobody",
		"reopen nobody":                        "there is no search nobody that is over",
		"reopen a271244":                       "there is no search a271244 that is over",
		"show search nobody":                   "there is no search nobody",
		"show contact other 89fa8f8":           "domain other has no contact 89fa8f8",
		"show searches 89fa8f8 --cursor page2": "cursor: it is none of this query",
	} {
		_, err := w.try(strings.Fields(args)...)
		if usage := (*kit.UsageError)(nil); err == nil || errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func TestCommandsRefuse(t *testing.T) {
	w := &world{t: t, env: map[string]string{"SLUICE_TABLES": "a,b,c"}}
	for args, want := range map[string]string{
		"opne x":                               `unknown command "opne"; commands are answer, cancel, create, open, reopen, show. `,
		"create now":                           "1 arguments: want create",
		"create":                               "SLUICE_TABLES names 3 tables",
		"open db3280c":                         "1 arguments: want open DOMAIN CONTACT",
		"open db3280c x --metadata {":          "--metadata is no JSON object",
		"open db3280c x --metadata 1":          "--metadata is no JSON object",
		`open a b --metadata {},"x":1`:         "--metadata is no JSON object",
		"open db3280c x --metdata {}":          "unknown flag: --metdata: want open",
		"answer s first yes":                   `STEP is "first", want the number of an attempt`,
		"cancel":                               "0 arguments: want cancel SEARCH",
		"show":                                 "0 arguments: want show search",
		"show incident I-1":                    "want show search",
		"show search a b":                      "want show search",
		"show searches c --limit 0":            "--limit is 0, want 1 to 1000",
		"show searches c --before 1 --after 2": "--before and after: want one of them",
		"show searches c --before yesterday":   `--before "yesterday": want a time in UTC such as 2019-12-31T20:00:00Z, or the beginning of one such as 2019-12-31`,
		"show searches c --status foo":         `--status "foo": want active, canceled, successful, failed`,
		"show search s --status active":        "--status, --before and --after are of show searches",
	} {
		var usage *kit.UsageError
		if _, err := w.try(strings.Fields(args)...); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if _, err := w.try("cancel", ""); err == nil || !strings.Contains(err.Error(), "an argument is empty") {
		t.Error(err)
	}
	for name, c := range program.Commands {
		if out, err := w.try(name, "--help"); err != nil || !strings.Contains(out, c.Does) || !strings.Contains(out, "For example:\n  ") || !strings.Contains(out, "manhunt "+name) || !strings.Contains(program.Help(), c.Usage) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}
