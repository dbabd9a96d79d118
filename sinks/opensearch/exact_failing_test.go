package opensearch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// A document cannot be compared: its write is not done, not lost, and not a permanent
// failure.
func TestExactWithoutAnAnswer(t *testing.T) {
	older := string(exact("a", 8, false).Body)
	there := `{"docs":[{"_index":"i","_id":"a","found":true,"_version":128,"_seq_no":0,"_source":` + older + `}]}`
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"an answer without revisions", 200, there, "_primary_term"},
		{"the request is too large", 413, `{"error":{"type":"too_large","reason":"no"}}`, "status 413"},
		{"the request is refused", 400, `{"error":{"type":"parsing_exception","reason":"no"}}`, "status 400"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &cluster{seqNo: 1, docs: map[string]stored{"i\x00a\x00": {version: 128, body: older}}}
			c.request = func(_ int, ops []string) *reply {
				if ops[0] == "mget" {
					return &reply{status: tt.status, body: tt.body}
				}
				return nil
			}
			err := c.sink(t, Options{}).Write(t.Context(), exact("a", 9, false))
			if err == nil || sluice.IsPermanent(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
		})
	}
}

// The time of a write ends while its document is read to compare. The refusal for load
// before that counts.
func TestExactRefusedBeforeTheTimeRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{seqNo: 1, docs: map[string]stored{"i\x00a\x00": {version: 128, body: string(exact("a", 8, false).Body)}}}
		c.item = func(n int, _ string) *verdict {
			if n < 2 {
				return &verdict{status: 429}
			}
			return nil
		}
		c.request = func(_ int, ops []string) *reply {
			if ops[0] == "mget" {
				return &reply{hang: true}
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.sink(t, Options{Timeout: time.Hour}).Write(ctx, exact("a", 9, false))
		if !outcomes.IsOverloaded(err) || !strings.Contains(err.Error(), "given up after 3 tries") {
			t.Error(err)
		}
	})
}

// Another writer changes the document between each read and write. The write backs
// off after some comparisons, and says why when its time is over.
func TestExactBesideABusyWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{seqNo: 1, docs: map[string]stored{"i\x00a\x00": {version: 128, body: string(exact("a", 8, false).Body)}}}
		var times []time.Time // of reads
		c.request = func(_ int, ops []string) *reply {
			if ops[0] == "mget" {
				times = append(times, time.Now())
			} else {
				d := c.docs["i\x00a\x00"]
				d.seqNo += 100
				c.docs["i\x00a\x00"] = d
			}
			return nil
		}
		err := c.sink(t, Options{Timeout: 5 * time.Second}).Write(t.Context(), exact("a", 9, false))
		if err == nil || sluice.IsPermanent(err) || !strings.Contains(err.Error(), "another writer keeps changing the document") {
			t.Error(err)
		}
		if len(times) < 2*maxCompared || !times[maxCompared-1].Equal(times[0]) || !times[maxCompared].After(times[0]) {
			t.Errorf("%d reads, want a pause after %d", len(times), maxCompared)
		}
	})
}

// Two writes by revision of one document: neither stands for the other.
func TestUnchangedStandsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{seqNo: 7, docs: map[string]stored{"i\x00a\x00": {version: 1, seqNo: 6, body: `{"n":9}`}}}
		var ops []document.Op
		for i, seqNo := range []int64{6, 5} {
			op := put("i", "a", fmt.Sprintf(`{"n":%d}`, i))
			op.Fence, op.Revision = document.Unchanged, document.Revision{SeqNo: seqNo, PrimaryTerm: 1}
			ops = append(ops, op)
		}
		if errs := c.sink(t, Options{}).WriteAll(t.Context(), ops); errs != nil {
			t.Error(errs)
		}
		if n, _ := c.at("a"); n != 0 {
			t.Errorf("write %d is there, want that of the revision that was there", n)
		}
	})
}
