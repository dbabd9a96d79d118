package lambda

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

const long = "900100000000001234500000042"

func TestLowest(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ids     string // as withNumbers takes them, separated by spaces; "-" is a missing number
		settled int
		want    string
		err     string
	}{
		{"the first", "#1 #2 #3", 0, "#1", ""},
		{"the middle", "#1 #2 #3", 1, "#2", ""},
		{"the last", "#1 #2 #3", 2, "#3", ""},
		{"batch of one", long, 0, long, ""},
		{"numbers, not strings", "#8 #9 #10 #11", 1, "#9", ""},
		{"more digits later", "999999999999999999999 1000000000000000000000", 0, "999999999999999999999", ""},
		{"leading zeros stay", "000#8 000#9", 1, "000#9", ""},
		{"all the same number", "#5 #5 #5", 0, "#5", ""},
		{"same number as a settled one", "#5 #5 #6", 1, "#5", ""},
		{"not in order, lower one settled", "#3 #5 #2", 0, "", "not in the order"},
		{"not in order, goes back to a lower one", "#1 #5 #2 #6", 1, "#1", ""},
		{"not in order behind it", "#1 #2 #9 #3", 1, "#2", ""},
		{"not in order, as numbers", "#1 #20 #9", 1, "#1", ""},
		{"missing number", "#1 - #3", 1, "", "record 2 of 3"},
		{"missing number behind it", "#1 #2 -", 1, "", "record 3 of 3"},
		{"missing number before it", "- #2 #3", 1, "#2", ""},
		{"not a number", "#1 #2x #3", 1, "", "no valid SequenceNumber"},
		{"too long a number", "#1 " + strings.Repeat("9", 41), 1, "", "no valid SequenceNumber"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ids []string
			var numbers []sluice.Sequence
			for id := range strings.FieldsSeq(withNumbers(tt.ids)) {
				id = strings.Trim(id, "-")
				ids, numbers = append(ids, id), append(numbers, sluice.Sequence(id))
			}
			got, err := lowest(ids, tt.settled, "manhunt")
			if want := withNumbers(tt.want); got != want {
				t.Errorf("lowest = %q, want %q", got, want)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want one with %q", err, tt.err)
			}
			if err == nil && comesAgain(numbers, answerOf(nil, []string{got}), false) > tt.settled {
				t.Errorf("record %d would be lost", tt.settled)
			}
		})
	}
}

func TestAnswerOf(t *testing.T) {
	for _, tt := range []struct {
		name     string
		state    []byte
		failures []string
		want     string
	}{
		{"nothing", nil, nil, `{"batchItemFailures":[]}`},
		{"one", nil, []string{long}, `{"batchItemFailures":[{"itemIdentifier":"` + long + `"}]}`},
		{"two", nil, []string{"a", "b"}, `{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}`},
		{"quoted", nil, []string{`a"b\`}, `{"batchItemFailures":[{"itemIdentifier":"a\"b\\"}]}`},
		{"state", []byte(`{"1": 282}`), nil, `{"state":{"1": 282},"batchItemFailures":[]}`},
		{"state and failure", []byte(`{}`), []string{long}, `{"state":{},"batchItemFailures":[{"itemIdentifier":"` + long + `"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := answerOf(tt.state, tt.failures)
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if !json.Valid(got) {
				t.Errorf("%s is not JSON", got)
			}
		})
	}
}
