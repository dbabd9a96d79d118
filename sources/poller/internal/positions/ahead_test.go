package positions

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/staterules"
)

// The next reader gets the unsettled records and all that were not read, in their
// order, and no settled one: whatever is settled ahead.
func TestAheadNamesTheUnsettled(t *testing.T) {
	named := 0
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		after := wide(5)
		if seed%4 == 0 {
			after = "" // the beginning of a shard
		}
		p := New(after, time.Now(), nil)
		recs := make([]sluice.Record, rnd.IntN(400))
		number := 9
		for i := range recs {
			number += 1 + rnd.IntN(30)
			recs[i].Sequence = wide(number)
		}
		read := rnd.IntN(len(recs) + 1)
		for i := 0; i < read; {
			n := min(1+rnd.IntN(20), read-i)
			p.Add(recs[i : i+n])
			i += n
		}
		read -= rnd.IntN(min(read, 20) + 1) // the last are not submitted
		var unsettled []uint64
		one := 1 + rnd.IntN(50)
		for i := range read {
			if rnd.IntN(one) == 0 {
				unsettled = append(unsettled, uint64(i+1))
			}
		}
		low := uint64(read)
		if len(unsettled) > 0 {
			low = unsettled[0] - 1
		}
		p.Settle(low)
		text := p.Ahead(Ahead{}, uint64(read), unsettled)
		if len(text) > staterules.MaxAhead {
			t.Fatalf("seed %d: %d bytes for %d records", seed, len(text), len(unsettled))
		}
		if text == "" {
			if settled := read - int(low) - len(unsettled); len(unsettled) <= MaxUnsettled && settled > 0 {
				t.Fatalf("seed %d: %d records are settled ahead, and nothing says so", seed, settled)
			}
			continue
		}
		named++
		var want []sluice.Record
		for _, ord := range unsettled {
			want = append(want, recs[ord-1])
		}
		want = append(want, recs[read:]...)
		a := ParseAhead(text)
		var got []sluice.Record
		for rest := recs[low:]; len(rest) > 0; {
			n := min(1+rnd.IntN(20), len(rest))
			got = append(got, a.Unsettled(append([]sluice.Record(nil), rest[:n]...))...)
			if past := a.Past(rest[n-1].Sequence); past != (len(recs)-len(rest)+n >= read) {
				t.Fatalf("seed %d: past what was read: %v", seed, past)
			}
			rest = rest[n:]
		}
		if sequences(got) != sequences(want) {
			t.Fatalf("seed %d: the next reader gets\n%s, want\n%s", seed, sequences(got), sequences(want))
		}
	}
	if named < 1000 {
		t.Errorf("%d of 2000 trials had something settled ahead", named)
	}
}

func sequences(recs []sluice.Record) string {
	var all []string
	for i := range recs {
		all = append(all, string(recs[i].Sequence))
	}
	return strings.Join(all, " ")
}

// Two stops, and all that is settled past an unsettled record was settled before the
// first: the reader between them took no record after that one, or settled none.
func TestAheadOfWhatTheReaderBeforeHadSettled(t *testing.T) {
	for _, more := range [][]sluice.Record{nil, {{Sequence: wide(9)}}} {
		before := ParseAhead(wide(8).Fence() + " " + wide(6).Fence())
		p := New(wide(5), time.Now(), nil)
		p.Add(before.Unsettled([]sluice.Record{{Sequence: wide(6)}, {Sequence: wide(7)}, {Sequence: wide(8)}}))
		p.Skip(wide(8))
		p.Add(more)
		p.Settle(0)
		unsettled := []uint64{1, 2}[:1+len(more)]
		got := ParseAhead(p.Ahead(before, uint64(len(unsettled)), unsettled))
		recs := []sluice.Record{{Sequence: wide(6)}, {Sequence: wide(7)}, {Sequence: wide(8)}, {Sequence: wide(9)}}
		if got, want := sequences(got.Unsettled(recs)), sequences([]sluice.Record{{Sequence: wide(6)}, {Sequence: wide(9)}}); got != want {
			t.Errorf("with %d more records the next reader gets %s, want %s", len(more), got, want)
		}
	}
}

// A record without a sequence number cannot be named: then all come again.
func TestAheadWithoutASequenceNumber(t *testing.T) {
	for nth := range 3 {
		p := New(wide(5), time.Now(), nil)
		recs := []sluice.Record{{Sequence: wide(6)}, {Sequence: wide(7)}, {Sequence: wide(8)}}
		recs[nth].Sequence = ""
		p.Add(recs)
		p.Settle(0)
		if text := p.Ahead(Ahead{}, 3, []uint64{1}); (text == "") != (nth != 1) {
			t.Errorf("record %d has no sequence number: %q", nth, text)
		}
		got := ParseAhead(wide(8).Fence() + " " + wide(6).Fence()).Unsettled(recs)
		want := 1 // the unsettled one, which the fence names as well
		if nth == 1 || nth == 2 {
			want = 2
		}
		if len(got) != want {
			t.Errorf("record %d has no sequence number: %d records come again, want %d", nth, len(got), want)
		}
	}
}

// Of a text that is not understood nothing is left out.
func TestAheadThatIsNotUnderstood(t *testing.T) {
	recs := []sluice.Record{{Sequence: "6"}, {Sequence: "7"}, {Sequence: "8"}}
	for _, text := range []string{"", " ", "8 x", "x 6", "8 7 6", "8 6 6", "7 8", "8 -6", "8 6 9"} {
		if got := ParseAhead(text).Unsettled(append([]sluice.Record(nil), recs...)); len(got) != 3 {
			t.Errorf("%q: %s come again, want all", text, sequences(got))
		}
	}
	for text, want := range map[string]string{"7": "8", "7 6": "6 8", "8 6 7": "6 7"} {
		if got := sequences(ParseAhead(text).Unsettled(append([]sluice.Record(nil), recs...))); got != want {
			t.Errorf("%q: %s come again, want %s", text, got, want)
		}
	}
}
