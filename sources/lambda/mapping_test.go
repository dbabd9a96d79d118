package lambda

import (
	"encoding/json"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// comesAgain says what an event source mapping with ReportBatchItemFailures does after
// an invocation: the index in the batch from which the records come again, len(batch)
// when none does. It is the service's side of the contract, by its documentation. Tests
// check the handler's side against it.
func comesAgain(batch []sluice.Sequence, answer []byte, failed bool) int {
	if failed {
		return 0
	}
	var a struct {
		BatchItemFailures []struct{ ItemIdentifier *string }
	}
	if string(answer) == "[]" || json.Unmarshal(answer, &a) != nil || len(a.BatchItemFailures) == 0 {
		return len(batch)
	}
	lowest := sluice.Sequence("")
	for _, f := range a.BatchItemFailures {
		if f.ItemIdentifier == nil || indexOf(batch, sluice.Sequence(*f.ItemIdentifier)) < 0 {
			return 0
		}
		if id := sluice.Sequence(*f.ItemIdentifier); lowest == "" || id.Compare(lowest) < 0 {
			lowest = id
		}
	}
	return indexOf(batch, lowest)
}

func indexOf(batch []sluice.Sequence, id sluice.Sequence) int {
	for i := range batch {
		if batch[i] == id {
			return i
		}
	}
	return -1
}

// The service's reaction to each answer.
func TestMappingReadsAnswers(t *testing.T) {
	batch := []sluice.Sequence{recordtest.Sequence(8), recordtest.Sequence(9), recordtest.Sequence(10), recordtest.Sequence(11)}
	for _, tt := range []struct {
		name   string
		answer string // as withNumbers takes it
		failed bool
		from   int
	}{
		{"null", `null`, false, 4},
		{"empty object", `{}`, false, 4},
		{"empty array", `[]`, false, 4},
		{"empty list", `{"batchItemFailures":[]}`, false, 4},
		{"null list", `{"batchItemFailures":null}`, false, 4},
		{"empty identifier", `{"batchItemFailures":[{"itemIdentifier":""}]}`, false, 0},
		{"null identifier", `{"batchItemFailures":[{"itemIdentifier":null}]}`, false, 0},
		{"missing identifier", `{"batchItemFailures":[{}]}`, false, 0},
		{"unknown identifier", `{"batchItemFailures":[{"itemIdentifier":"#12"}]}`, false, 0},
		{"an event id", `{"batchItemFailures":[{"itemIdentifier":"e9"}]}`, false, 0},
		{"error, panic or time-out", ``, true, 0},
		{"one", `{"batchItemFailures":[{"itemIdentifier":"#9"}]}`, false, 1},
		{"several: the lowest number", `{"batchItemFailures":[{"itemIdentifier":"#10"},{"itemIdentifier":"#9"},{"itemIdentifier":"#11"}]}`, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := comesAgain(batch, []byte(withNumbers(tt.answer)), tt.failed); got != tt.from {
				t.Errorf("comes again from %d, want %d", got, tt.from)
			}
		})
	}
}
