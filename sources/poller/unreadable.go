package poller

import (
	"bytes"
	"cmp"
	"errors"
	"regexp"

	"github.com/sluicehq/sluice"
)

// A page that cannot be split into records stays so, while its records expire. So
// the reader asks for fewer records until the faulty one is alone. It passes this
// record on unparsed with its position. The flow parks it as undecodable.

const (
	wholeTries = 3 // of a page before asking for fewer records
	loneTries  = 8 // of a single record before passing it on unparsed
)

// narrowed is the search for the faulty record. The zero value is no search.
type narrowed struct {
	limit   int32 // records in a page; 0: the reader's own
	suspect int   // number of next records that include the faulty one
	tries   int   // pages in a row that could not be split
}

// split notes a page that was split into n records.
func (w *narrowed) split(n int) {
	w.tries = 0
	if w.suspect -= n; w.suspect <= 0 || n == 0 {
		*w = narrowed{}
	}
}

// unsplit notes a page of at most that many records that could not be split. It
// reports whether to pass its record on unparsed.
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

// decode splits a page into records. raw: the page has one unparsed record, and
// nothing else of it is known.
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
	if !ok { // such as a proxy's page instead of a response
		return pg, false, err
	}
	r.narrowed = narrowed{}
	return sluice.Page{Records: []sluice.Record{rec}}, true, nil
}

var (
	recordsMember  = regexp.MustCompile(`"Records"\s*:\s*\[`)
	sequenceMember = regexp.MustCompile(`"SequenceNumber"\s*:\s*"([0-9]+)"`)
)

// loneRecord finds the single record of a body that cannot be split. Quotes in an
// item's text are escaped, and attributes are objects, so neither member occurs in
// an item. It reports false unless the body has one position past the last read.
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

// pageLimit is the number of records to ask for; 0 is the service's limit.
func (r *reader) pageLimit() int32 { return cmp.Or(r.narrowed.limit, r.limit) }
