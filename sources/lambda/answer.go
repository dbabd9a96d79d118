package lambda

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
)

// batch is the data of the event that the response needs. It is copied before the
// records go to the flow, which then owns them.
type batch struct {
	pipe  bool
	state []byte // of a tumbling window, else nil
	table string
	ids   []string // sequence numbers; from a pipe, ids of events
}

func batchOf(payload []byte, page sluice.Page) batch {
	b := batch{state: page.State, pipe: isArray(payload), ids: make([]string, len(page.Records))}
	for i := range page.Records {
		rec := &page.Records[i]
		b.table, b.ids[i] = cmp.Or(b.table, rec.Table), string(rec.Sequence)
		if b.pipe {
			b.ids[i] = rec.EventID
		}
	}
	return b
}

func isArray(payload []byte) bool {
	payload = bytes.TrimLeft(payload, " \t\r\n")
	return len(payload) > 0 && payload[0] == '['
}

// answer returns the response for a batch whose first settled records are durable,
// and the first identifier in it.
func (b *batch) answer(settled int) (answer []byte, from string, err error) {
	failures := b.ids[settled:]
	switch {
	case len(failures) == 0:
		return answerOf(b.state, nil), "", nil
	case b.pipe:
		err = checkEvents(b.ids, settled, b.table)
	default:
		from, err = lowest(b.ids, settled, b.table)
		failures = []string{from}
	}
	if err != nil {
		return nil, "", err
	}
	return answerOf(b.state, failures), failures[0], nil
}

// lowest returns the identifier from which a batch must come again, when the
// record at settled is the first that is not durable.
//
// In a batch in the order of its numbers, as the service sends it, that is the
// record's own. In any other order the service may cut at the identifier's place
// or at its number. The result is then a record such that every unsettled record
// is later and not lower, so that none is lost either way.
func lowest(ids []string, settled int, table string) (string, error) {
	low := sluice.Sequence(ids[settled])
	for i, id := range ids[settled:] {
		seq := sluice.Sequence(id)
		if !seq.Valid() {
			return "", fmt.Errorf("record %d of %d (table %q) is not settled and has no valid SequenceNumber to report it by (%q): the whole batch fails",
				settled+i+1, len(ids), table, id)
		}
		if seq.Compare(low) < 0 {
			low = seq
		}
	}
	for _, id := range slices.Backward(ids[:settled+1]) {
		if seq := sluice.Sequence(id); seq.Valid() && seq.Compare(low) <= 0 {
			return id, nil
		}
	}
	return "", fmt.Errorf("record %d of %d (table %q) is not settled and the batch is not in the order of its sequence numbers (%s comes before %s): the whole batch fails",
		settled+1, len(ids), table, ids[settled], low)
}

// checkEvents refuses a response to a pipe that would omit a record.
func checkEvents(events []string, settled int, table string) error {
	for i, id := range events[settled:] {
		if id == "" {
			return fmt.Errorf("record %d of %d (table %q) is not settled and has no eventID to report it to the pipe by: the whole batch fails",
				settled+i+1, len(events), table)
		}
	}
	return nil
}

// answerOf returns a response. It has the state as it came.
func answerOf(state []byte, failures []string) []byte {
	all := make([]struct {
		ID string `json:"itemIdentifier"`
	}, len(failures))
	for i, id := range failures {
		all[i].ID = id
	}
	list, _ := json.Marshal(all) // never fails
	if state != nil {
		return fmt.Appendf(nil, `{"state":%s,"batchItemFailures":%s}`, state, list)
	}
	return fmt.Appendf(nil, `{"batchItemFailures":%s}`, list)
}
