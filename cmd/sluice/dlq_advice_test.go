package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// docs/dead-letters.md has the advice of sluice dlq show.
func TestReferenceOfErrors(t *testing.T) {
	const file = "../../docs/dead-letters.md"
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)(<!-- errors: [^\n]*-->\n).*(<!-- end of errors -->)`)
	if len(block.FindAll(have, -1)) != 1 {
		t.Fatalf("%s has no place for the list", file)
	}
	list := "\n"
	for _, a := range advices {
		list += fmt.Sprintf("- %s: %s\n", a.shows, strings.ReplaceAll(a.do, "`sluice dlq ", "`"))
	}
	want := block.ReplaceAllString(string(have), "${1}"+strings.ReplaceAll(list, "$", "$$")+"\n${2}")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(have) != want {
		t.Errorf("%s is not what the commands say: go generate ./cmd/sluice", file)
	}
}

func TestAdvice(t *testing.T) {
	refused := document.NewError(document.Op{}, 400, "mapper_parsing_exception", "failed to parse")
	for text, want := range map[string]string{
		refused.Error(): "mapping",
		document.NewError(document.Op{}, 400, "illegal_argument_exception", "no").Error(): "OpenSearch refuses this document",
		(&outcomes.Panic{Value: "ouch", Stack: []byte("goroutine 1")}).Error():            "The handler has a bug",
		(&outcomes.Panic{}).Error():                                                            "The handler has a bug",
		sluice.DecodeRecord([]byte(`{"eventName":`)).Err().Error():                             "Something changed the record",
		`when "new.n > 1", line 1, column 7: a text > a number: want two numbers or two texts`: "The expression of the route",
		`when "new.n": it is a number, want true or false`:                                     "The expression of the route",
		`record shop/s/100000000003498069978: route "drop" needs the old image: the REMOVE record does not have it although the stream should send one (the record says "NEW_AND_OLD_IMAGES")`:    "without an image, as DynamoDB Local",
		`message m of queue q: no route takes messages of kind "x"; a queue forgets what is taken from it`:                                                                                        "Nobody handles such messages",
		`table t, shard s, sequence number 100000000003498069978: route "r" (x) needs the old image, but the MODIFY record came without it; set the table's StreamViewType to NEW_AND_OLD_IMAGES`: "does not carry the images",
		`operation error SQS: SendMessageBatch, https response error StatusCode: 403, RequestID: , api error AccessDenied: no`:                                                                    "Give the role the",
		"dial tcp 127.0.0.1:9200: connect: connection refused":                                                                "The sink was down",
		"context deadline exceeded":                                                                                           "The sink was down",
		`body and attributes are 300000 bytes, more than the limit of 262144`:                                                 "SQS does not take this message",
		"table \"t\": ConditionalCheckFailed: The conditional request failed":                                                 "DynamoDB refuses",
		"ladder (key hash 1) of escalation (key hash 2) has no good step, and the escalation was failed: item 1 of 1: a step": "set the status of the escalation",
		"no such customer":       "refused the record, or kept failing",
		"order 503 of 429 boxes": "The sink was down", // it cannot be told
	} {
		o := letters.Outline{ID: "0000000000000000000100000000000000000007-cea09b3487a1562c", Kind: "record", Route: "new search", Last: letters.Fault{Error: text}}
		got := adviceFor(o).text(o, " --queue failed")
		if !strings.Contains(strings.ReplaceAll(got, "\n", " "), want) {
			t.Errorf("%s: %s", text, got)
		}
		if strings.Contains(got, "ID") || strings.Contains(got, "ROUTE") || strings.ContainsAny(got, "`") {
			t.Errorf("%s: not filled in: %s", text, got)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if uniseg.StringWidth(line) > 100 {
				t.Errorf("%s: more than 100 columns: %s", text, line)
			}
		}
	}
}

// The advice has commands for this letter, with its place and the flags that it needs.
func TestAdviceNamesTheLetter(t *testing.T) {
	o := letters.Outline{ID: "1-cea09b3487a1562c", Kind: "record", Route: "it's $1", Last: letters.Fault{Error: "x"}, First: letters.Fault{Error: "AccessDenied"}}
	if got := adviceFor(o).text(o, " --queue ROUTE"); !strings.Contains(got, "\n  [1] sluice dlq redrive --route 'it'\\''s $1' --queue ROUTE\nA route that refuses redriven records needs --allow 'it'\\''s $1'.") {
		t.Errorf("by its first error: %s", got)
	}
	o.First, o.Unverified = letters.Fault{}, "it is not signed"
	if got := strings.ReplaceAll(adviceFor(o).text(o, ""), "\n", " "); !strings.Contains(got, "then [2]: the letter keeps the old image.   [1] sluice dlq redrive --unsigned 1-cea09b3487a1562c   [2] sluice dlq purge 1-cea09b3487a1562c") || !strings.Contains(got, "Nobody knows who sent this letter") {
		t.Errorf("not signed: %s", got)
	}
	o = letters.Outline{ID: "gap-1-cea09b3487a1562c", Kind: "gap", Last: letters.Fault{Error: "timeout"}}
	if got := strings.ReplaceAll(adviceFor(o).text(o, ""), "\n", " "); !strings.Contains(got, "[1], or [2].   [1] sluice gaps acknowledge   [2] sluice dlq purge cea09b34") || !strings.Contains(got, "audit (docs/audit.md)") {
		t.Errorf("a gap: %s", got)
	}
}
