package lambda

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sluicehq/sluice"
)

// batch is the data of the event that the response needs. It is copied before the
// records go to the flow, which then owns them.
type batch struct {
	pipe   bool
	state  []byte // of a tumbling window, else nil
	table  string
	ids    []sluice.Sequence // of a batch from an event source mapping
	events []string          // of a batch from a pipe
}

func batchOf(payload []byte, page sluice.Page) batch {
	b := batch{state: page.State, pipe: isArray(payload)}
	if len(page.Records) > 0 {
		b.table = page.Records[0].Table
	}
	if b.pipe {
		b.events = make([]string, len(page.Records))
		for i := range page.Records {
			b.events[i] = page.Records[i].EventID
		}
		return b
	}
	b.ids = make([]sluice.Sequence, len(page.Records))
	for i := range page.Records {
		b.ids[i] = page.Records[i].Sequence
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
	var failures []string
	switch {
	case b.pipe && settled < len(b.events):
		failures, err = b.events[settled:], checkEvents(b.events, settled, b.table)
	case !b.pipe && settled < len(b.ids):
		var id sluice.Sequence
		id, err = lowest(b.ids, settled, b.table)
		failures = []string{string(id)}
	}
	if err != nil {
		return nil, "", err
	}
	if len(failures) > 0 {
		from = failures[0]
	}
	return appendAnswer(nil, b.state, failures), from, nil
}

// lowest returns the identifier from which a batch must come again, when the
// record at settled is the first that is not durable.
//
// In a batch in the order of its numbers, as the service sends it, that is the
// record's own. In any other order the service may cut at the identifier's place
// or at its number. The result is then a record such that every unsettled record
// is later and not lower, so that none is lost either way.
func lowest(ids []sluice.Sequence, settled int, table string) (sluice.Sequence, error) {
	low := ids[settled]
	for i, id := range ids[settled:] {
		if !id.Valid() {
			return "", fmt.Errorf("record %d of %d (table %q) is not settled and has no valid SequenceNumber to report it by (%q): the whole batch fails",
				settled+i+1, len(ids), table, id)
		}
		if id.Compare(low) < 0 {
			low = id
		}
	}
	for i := settled; i >= 0; i-- {
		if ids[i].Valid() && ids[i].Compare(low) <= 0 {
			return ids[i], nil
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

func appendAnswer(dst []byte, state []byte, failures []string) []byte {
	dst = append(dst, '{')
	if state != nil {
		dst = append(dst, `"state":`...)
		dst = append(append(dst, state...), ',')
	}
	dst = append(dst, `"batchItemFailures":[`...)
	for i, id := range failures {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"itemIdentifier":`...)
		quoted, _ := json.Marshal(id) // never fails
		dst = append(append(dst, quoted...), '}')
	}
	return append(dst, `]}`...)
}
