package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/audit"
)

// The counts of a failed audit are no result. Its differences are.
func TestReportOfFailure(t *testing.T) {
	for _, tt := range []struct {
		result audit.Result
		err    error
		json   bool
		want   string
	}{
		{audit.Result{Items: 250, Documents: 250}, errors.New("refused"), false, ""},
		{audit.Result{Items: 250, Documents: 250, Missing: 1}, errors.New("refused"), false, "so far: 250 items, 250 documents expected, 0 in the index: 1 missing"},
		{audit.Result{Items: 250}, errors.New("refused"), true, `"clean":false,"error":"refused"`},
		{audit.Result{Items: 250}, nil, false, "250 items"},
		{audit.Result{Items: 1, Documents: 1}, nil, false, "1 item, 1 document expected, "},
	} {
		var out strings.Builder
		(&report{printer: printer{w: &out, json: tt.json}}).result(tt.result, tt.err)
		if !strings.Contains(out.String(), tt.want) || tt.want == "" && out.Len() > 0 {
			t.Errorf("%+v, %v: %q, want %q", tt.result, tt.err, &out, tt.want)
		}
	}
}

// A table that is wrong has many equal lines: 20 of a kind are enough for people.
func TestReportIsShort(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out strings.Builder
		r := &report{printer: printer{w: &out, json: asJSON}}
		for i := range 43 {
			r.drift(audit.Drift{Kind: audit.Ghost, Ref: document.Ref{Index: "things", ID: fmt.Sprint(i)}})
		}
		r.drift(audit.Drift{Kind: audit.Missing, Ref: document.Ref{Index: "things", ID: "a"}})
		r.result(audit.Result{Ghosts: 43, Missing: 1}, nil)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		want := 23
		if asJSON {
			want = 45
		} else if lines[21] != "ghost: 23 more; --json prints all" {
			t.Errorf("%q", lines[21])
		}
		if len(lines) != want {
			t.Errorf("JSON %v: %d lines, want %d", asJSON, len(lines), want)
		}
	}
}

// The error that stops a repair says what Sluice compared, and which flag continues.
func TestReportOfTheWrongTable(t *testing.T) {
	url := "http://localhost:8000"
	from := (&source{cfg: aws.Config{BaseEndpoint: &url}, tables: []string{"shops"}, index: "shop"}).place()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("audit: %w", &audit.ApartError{Table: "shops", Wanted: 1000, Strangers: 46}),
			"audit: nothing is written: the index has 0 of the 1000 documents that the items of table shops ask for, and 46 without an item; check the names of table and index, the account and the Region; it is table shops of DynamoDB at http://localhost:8000, and index shop; if they belong together: --trust-tables"},
		{&audit.BrakeError{Ghosts: 46, Documents: 46, Allowed: 2, Empty: true},
			"no document is deleted: 46 of 46 are ghosts, and the table has no item for any of them; check the table's name, the account and the Region; it is table shops of DynamoDB at http://localhost:8000, and index shop; if the table is the right one: --trust-tables --max-deletes 46 deletes them"},
		{&audit.BrakeError{Ghosts: 2, Documents: 20, Allowed: 1}, "no document is deleted: 2 of 20 are ghosts, and 1 may be deleted; look at them first: --max-deletes 2 deletes them"},
		{errors.New("refused"), "refused"},
	} {
		if got := (&report{from: from}).braked(tt.err); got.Error() != tt.want {
			t.Errorf("%v\nwant %s", got, tt.want)
		}
	}
	if got := (&source{cfg: aws.Config{Region: "eu-west-1"}, tables: []string{"a", "b"}, index: "i"}).place(); got != "tables a, b of DynamoDB at Region eu-west-1, and index i" {
		t.Error(got)
	}
}

// After a complete repair the two are equal.
func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		result audit.Result
		want   string
	}{
		{audit.Result{Missing: 40, Repaired: 40}, "the table and the index were not equal; all drift is repaired"},
		{audit.Result{Missing: 40}, "the table and the index are not equal"},
		{audit.Result{Missing: 40, Ahead: 1, Repaired: 40, Refused: 1}, "the table and the index are not equal"},
		{audit.Result{Failed: 1}, "the table and the index are not equal"},
	} {
		if err := verdict(tt.result); err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %v, want %s", tt.result, err, tt.want)
		}
	}
	if err := verdict(audit.Result{}); err != nil {
		t.Error(err)
	}
}
