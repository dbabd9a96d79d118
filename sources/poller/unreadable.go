package poller

import (
	"bytes"
	"errors"
	"regexp"

	"github.com/sluicehq/sluice"
)

// A page that cannot be split into records stays so, and the records in it
// expire. So the reader asks for fewer records until the one at fault is alone.
// That one it hands over as it came, with its position: the flow parks what
// cannot be decoded.

const (
	wholeTries = 3 // of a page before fewer records are asked for
	loneTries  = 8 // of a record that is alone before it is handed over as it came
)

// narrowed is how a reader looks for the record at fault. The zero value looks
// for none.
type narrowed struct {
	limit   int32 // of records in a page; 0: the reader's own
	suspect int   // records, from the next one on, among which is the one at fault
	tries   int   // in a row of pages that could not be split
}

// split notes a page that could be split into n records.
func (w *narrowed) split(n int) {
	w.tries = 0
	if w.suspect -= n; w.suspect <= 0 || n == 0 {
		*w = narrowed{}
	}
}

// unsplit notes a page of at most that many records that could not be split.
// It reports whether its record is to be handed over as it came.
func (w *narrowed) unsplit(most int) (handOver bool) {
	w.tries++
	switch {
	case most == 1:
		return w.tries >= loneTries
	case w.limit == 0 && w.tries < wholeTries:
	default:
		*w = narrowed{limit: int32(most / 2), suspect: most} //nolint:gosec // at most 1,000
	}
	return false
}

// decode splits a page into records. raw says that its one record is there as it
// came, and nothing else of the page is known.
func (r *reader) decode(body []byte) (pg sluice.Page, raw bool, err error) {
	pg, err = sluice.DecodeGetRecords(body, sluice.Source{StreamARN: r.shard.StreamARN, ShardID: r.shard.ID})
	if err == nil {
		r.narrowed.split(len(pg.Records))
		return pg, false, nil
	}
	if _, ok := errors.AsType[*sluice.EnvelopeError](err); !ok || !r.narrowed.unsplit(r.most()) {
		return pg, false, err
	}
	rec, ok := r.loneRecord(body)
	if !ok { // such as a proxy's page in place of an answer
		return pg, false, err
	}
	r.narrowed = narrowed{}
	return sluice.Page{Records: []sluice.Record{rec}}, true, nil
}

var (
	recordsMember  = regexp.MustCompile(`"Records"\s*:\s*\[`)
	sequenceMember = regexp.MustCompile(`"SequenceNumber"\s*:\s*"([0-9]+)"`)
)

// loneRecord finds the one record of a body that cannot be split. Quotes in an
// item's text are escaped and attributes are objects: neither member is found
// in an item. It reports false unless one position is there, behind all that
// was read.
func (r *reader) loneRecord(body []byte) (rec sluice.Record, ok bool) {
	begin, end := recordsMember.FindIndex(body), bytes.LastIndexByte(body, ']')
	if begin == nil || end < begin[1] {
		return rec, false
	}
	found := sequenceMember.FindAllSubmatch(body, 2)
	if len(found) != 1 {
		return rec, false
	}
	sequence := sluice.Sequence(found[0][1])
	if !sequence.Valid() || r.after != "" && sequence.Compare(r.after) <= 0 {
		return rec, false
	}
	rec = *sluice.DecodeRecord(bytes.TrimSpace(body[begin[1]:end]))
	rec.StreamARN, rec.Table, rec.ShardID, rec.Sequence = r.shard.StreamARN, r.shard.Table, r.shard.ID, sequence
	return rec, true
}

// pageLimit is how many records to ask for; 0 is the service's own limit.
func (r *reader) pageLimit() int32 {
	if r.narrowed.limit > 0 {
		return r.narrowed.limit
	}
	return r.limit
}
