package projection

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docversion"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

func note(title string) sluice.Item {
	return item.Of(item.String("id", "7"), item.String("title", title))
}

func at(n int, event sluice.EventName, old, now sluice.Item) *sluice.Record {
	return &sluice.Record{
		EventName: event, Table: "t", StreamARN: streamOf("2025-07-04T12:33:21.123"), Sequence: published[n],
		Keys: item.Of(item.String("id", "7")), Old: old, New: now, Origin: sluice.Live,
	}
}

// scanned is an item as a backfill reads it.
func scanned(it sluice.Item) *sluice.Record {
	rec := at(0, sluice.Snapshot, sluice.Item{}, it)
	rec.Sequence, rec.Origin = "", sluice.Backfilled
	return rec
}

// A change was lost, in a gap or with a stream that was replaced. A backfill brings
// its document up to date; changes that are still to come are written over it.
func TestBackfillAfterLostChanges(t *testing.T) {
	none := sluice.Item{}
	inserted := at(0, sluice.Insert, none, note("old"))
	removed := at(1, sluice.Remove, note("old"), none)
	later := at(2, sluice.Modify, note("new"), note("later"))
	for _, tt := range []struct {
		name   string
		before []*sluice.Record
		scan   sluice.Item // as the backfill read it
		now    sluice.Item // as the table has it after that
		reads  int
		want   string // the title; empty: no document
		after  *sluice.Record
		then   string
	}{
		{"a change", []*sluice.Record{inserted}, note("new"), note("new"), 1, "new", later, "later"},
		{"the INSERT after a deletion", []*sluice.Record{inserted, removed}, note("new"), note("new"), 1, "new", later, "later"},
		{"none", []*sluice.Record{inserted}, note("old"), note("old"), 0, "old", later, "later"},
		{"none: the document is ahead of the scan", []*sluice.Record{inserted, later}, note("old"), note("later"), 1, "later", nil, ""},
		{"the item changed after the scan", []*sluice.Record{inserted}, note("new"), note("newer"), 1, "newer", later, "later"},
		{"the item was deleted after the scan", []*sluice.Record{inserted, removed}, note("old"), none, 1, "", nil, ""},
		{"it will be deleted", []*sluice.Record{inserted}, note("new"), none, 1, "old", removed, ""},
		{"its deletion is still to come", []*sluice.Record{inserted}, note("new"), note("new"), 1, "new", removed, ""},
		{"a change comes again", []*sluice.Record{inserted}, note("new"), note("new"), 1, "new", inserted, "new"},
	} {
		index := streamtest.NewIndex()
		reads := 0
		p := must(t, index.Write, Options{Index: "i", ID: "{id}", Version: BySequence(), Current: func(context.Context, *sluice.Record) (sluice.Item, error) {
			reads++
			return tt.now, nil
		}})
		handle := func(rec *sluice.Record) {
			t.Helper()
			if err := p.Handle(t.Context(), rec); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		expect := func(want string) {
			t.Helper()
			docs := index.Docs("i")
			if got := len(docs) == 1 && want != "" && strings.Contains(string(docs[0].Source), `"`+want+`"`); !got && (want != "" || len(docs) > 0) {
				t.Errorf("%s: %+v, want %q", tt.name, docs, want)
			}
			for _, d := range docs {
				if mark, err := d.Mark("sluice"); err != nil || d.Version < docversion.Least(mark.Sequence) || docversion.Least(mark.Sequence) == 0 {
					t.Errorf("%s: %s at version %d, %v", tt.name, d.Source, d.Version, err)
				}
			}
		}
		for _, rec := range tt.before {
			handle(rec)
		}
		handle(scanned(tt.scan))
		expect(tt.want)
		if reads != tt.reads {
			t.Errorf("%s: the item was read %d times, want %d", tt.name, reads, tt.reads)
		}
		if tt.now.Exists() { // the next backfill finds it as it should be
			reads = 0
			handle(scanned(tt.now))
			if expect(tt.want); reads != 0 {
				t.Errorf("%s: the next backfill reads the item", tt.name)
			}
		}
		if tt.after != nil {
			handle(tt.after)
			expect(tt.then)
		}
	}
}

// While the repair is under way another writer changes the document: it is compared
// again, so that an older change is not left there.
func TestBackfillBesideAnotherWriter(t *testing.T) {
	index := streamtest.NewIndex()
	write, writes := index.Write, 0
	var p *Projection
	p = must(t, func(ctx context.Context, op document.Op) error {
		if writes++; writes == 3 { // INSERT, backfill, and now its repair
			if err := p.Handle(ctx, at(1, sluice.Modify, note("old"), note("older"))); err != nil {
				t.Error(err)
			}
		}
		return write(ctx, op)
	}, Options{Index: "i", ID: "{id}", Version: BySequence(), Current: asItIs(note("new"))})
	if err := p.Handle(t.Context(), at(0, sluice.Insert, sluice.Item{}, note("old"))); err != nil {
		t.Fatal(err)
	}
	if err := p.Handle(t.Context(), scanned(note("new"))); err == nil || sluice.IsPermanent(err) {
		t.Errorf("%v, want another try", err)
	}
	if err := p.Handle(t.Context(), scanned(note("new"))); err != nil {
		t.Error(err)
	}
	if docs := index.Docs("i"); !strings.Contains(string(docs[0].Source), `"new"`) {
		t.Errorf("%s", docs[0].Source)
	}
}

// If the item cannot be read, the document does not count as right.
func TestBackfillWithoutTheTable(t *testing.T) {
	down := errors.New("down")
	p := must(t, streamtest.NewIndex().Write, Options{Index: "i", ID: "{id}", Version: BySequence(), Current: func(context.Context, *sluice.Record) (sluice.Item, error) {
		return sluice.Item{}, down
	}})
	if err := p.Handle(t.Context(), at(0, sluice.Insert, sluice.Item{}, note("old"))); err != nil {
		t.Fatal(err)
	}
	if err := p.Handle(t.Context(), scanned(note("new"))); !errors.Is(err, down) || sluice.IsPermanent(err) {
		t.Error(err)
	}
}

// Without tombstones the index remembers a deletion with a version above every change.
// The item shows whether the write is later.
func TestForgetDeletedAsksTheTable(t *testing.T) {
	for _, tt := range []struct {
		name string
		now  sluice.Item
		err  error
		want string
	}{
		{"it was made again", note("new"), nil, "gc_deletes"},
		{"it is deleted", sluice.Item{}, nil, ""},
		{"it cannot be read", sluice.Item{}, errors.New("down"), "down"},
	} {
		p := must(t, func(_ context.Context, op document.Op) error {
			op.Refused(document.Refusal{Deleted: true})
			return nil
		}, Options{Index: "i", ID: "{id}", Version: BySequence(), ForgetDeleted: true, Current: func(context.Context, *sluice.Record) (sluice.Item, error) {
			return tt.now, tt.err
		}})
		err := p.Handle(t.Context(), at(2, sluice.Insert, sluice.Item{}, note("new")))
		if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || sluice.IsPermanent(err)) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if wait := new(outcomes.Retry); tt.want == "gc_deletes" && !errors.As(err, &wait) {
			t.Errorf("%v: would be parked as poison before the index forgets", err)
		}
	}
}

// A writer held a change for longer than tombstones stay: the process was suspended,
// or its way to the index was cut. What the others have deleted meanwhile does not
// come back.
func TestChangeThatWasHeldForTwoDays(t *testing.T) {
	for _, tt := range []struct {
		name  string
		age   time.Duration
		now   sluice.Item
		reads int
		want  string
	}{
		{"deleted meanwhile", 50 * time.Hour, sluice.Item{}, 1, ""},
		{"changed meanwhile", 50 * time.Hour, note("new"), 1, "new"},
		{"while the stream still has it", 23 * time.Hour, note("new"), 0, "old"},
	} {
		index, reads := streamtest.NewIndex(), 0
		p := must(t, index.Write, Options{Index: "i", ID: "{id}", Version: BySequence(), Current: func(context.Context, *sluice.Record) (sluice.Item, error) {
			reads++
			return tt.now, nil
		}})
		held := at(0, sluice.Insert, sluice.Item{}, note("old"))
		held.Created = time.Now().Add(-tt.age)
		if err := p.Handle(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, d := range index.Docs("i") {
			got += string(d.Source)
		}
		if reads != tt.reads || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s after %d reads, want %q after %d", tt.name, got, reads, tt.want, tt.reads)
		}
	}
}

// The index forgets deletions after an hour. Then a dead letter of a deleted or moved
// item restores no document, for any kind of version.
func TestRedriveAfterTheIndexForgot(t *testing.T) {
	it := func(rev, slug string, show bool) sluice.Item {
		return item.Of(item.String("pk", "a"), item.Number("rev", rev), item.String("slug", slug), item.Bool("show", show))
	}
	for name, now := range map[string]sluice.Item{
		"deleted":       {},
		"moved":         it("3", "other", true),
		"not taken":     it("3", "here", false),
		"still there":   it("3", "here", true),
		"not read: nil": {},
	} {
		for _, version := range []Version{ByAttribute("rev"), Unversioned(), BySequence()} {
			index := streamtest.NewIndex()
			o := Options{Index: "i", ID: "{slug}", Version: version, Only: shown, Current: asItIs(now)}
			want := name == "still there"
			if name == "not read: nil" {
				if version.kind == bySequence {
					continue // needs it
				}
				o.Current, want = nil, true
			}
			p, err := New(index.Write, o)
			if err != nil {
				t.Fatal(err)
			}
			rec := streamtest.Insert("t", it("1", "here", true).Raw(), streamtest.WithOrigin(sluice.Redriven))
			if err := p.Handle(t.Context(), &rec); err != nil && !sluice.IsSkip(err) {
				t.Errorf("%s, %v: %v", name, version, err)
			}
			there := false
			for _, d := range index.Docs("i") {
				there = there || d.ID == "here"
			}
			if there != want {
				t.Errorf("%s, %v: a document is there: %v, want %v", name, version, there, want)
			}
		}
	}
	down := errors.New("down")
	p := must(t, streamtest.NewIndex().Write, Options{Index: "i", ID: "{slug}", Version: ByAttribute("rev"), Current: func(context.Context, *sluice.Record) (sluice.Item, error) {
		return sluice.Item{}, down
	}})
	rec := streamtest.Insert("t", it("1", "here", true).Raw(), streamtest.WithOrigin(sluice.Redriven))
	if err := p.Handle(t.Context(), &rec); !errors.Is(err, down) || sluice.IsPermanent(err) {
		t.Errorf("%v, want another try", err)
	}
}
