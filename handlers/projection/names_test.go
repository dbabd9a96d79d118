package projection

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/streamtest"
)

// Items cannot choose indices of OpenSearch itself or of a reindex, or names that
// control a terminal. No error shows the name.
func TestNamesMadeFromItems(t *testing.T) {
	p, err := New(nil, Options{Index: "{tenant}", ID: "{pk}", Version: Unversioned()})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"acme": "", "orders-acme": "", "ä.b_c-d+e": "", "日本": "", strings.Repeat("a", 247): "", "also": "", "a.also.b": "",
		".security": "begins with '.'", ".": "is no name", "..": "is no name", "": "is empty",
		"_all": "begins with '-', '_' or '+'", "-orders": "begins with", "+orders": "begins with",
		"orders.also": "of a reindex", "orders.deletes": "of a reindex",
		strings.Repeat("a", 248): "248 bytes; want 247",
		"a\x00b":                 "U+0000", "a\x1b[2j": "U+001B", "a\nb": "U+000A", "a\x7f": "U+007F", "a\u009b2j": "U+009B",
		"a\u202eb": "U+202E", "a\u00a0b": "U+00A0", "a\ufeff": "U+FEFF", "a\ufffd": "U+FFFD",
		"<a-{now/d}>": "'<' in it", "a,b": "',' in it", "other:orders": "':' in it", "*": "'*' in it", "ACME": "not lower case",
	} {
		rec := streamtest.Insert("t", map[string]any{"pk": "a", "tenant": name})
		_, err := p.Project(&rec)
		switch {
		case want == "" && err == nil:
		case err == nil || !sluice.IsPermanent(err) || want == "" || !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", name, err, want)
		case len(name) > 2 && (strings.Contains(err.Error(), name) || strings.Contains(err.Error(), fmt.Sprintf("%q", name))):
			t.Errorf("%q: the error shows it: %v", name, err)
		}
	}
	// The author of the file may name an index of OpenSearch itself.
	if _, err := New(nil, Options{Index: ".orders", ID: "{pk}", Version: Unversioned()}); err != nil {
		t.Error(err)
	}
}

func handle(t *testing.T, p *Projection, rec sluice.Record) error { return p.Handle(t.Context(), &rec) }

func TestMaxIndices(t *testing.T) {
	index := streamtest.NewIndex()
	p, err := New(index.Write, Options{Index: "orders-{tenant}", ID: "{pk}", MaxIndices: 2, Version: Unversioned()})
	if err != nil {
		t.Fatal(err)
	}
	of := func(pk, tenant string) map[string]any { return map[string]any{"pk": pk, "tenant": tenant} }
	do := func(rec sluice.Record) error { return p.Handle(t.Context(), &rec) }
	for _, tenant := range []string{"a", "b", "a", "b"} {
		if err := do(streamtest.Insert("t", of("1", tenant))); err != nil {
			t.Fatal(err)
		}
	}
	written := len(index.Writes.Calls())
	for what, rec := range map[string]sluice.Record{
		"made":        streamtest.Insert("t", of("2", "third")),
		"moved there": streamtest.Modify("t", of("1", "a"), of("1", "third")),
		"moved away":  streamtest.Modify("t", of("1", "third"), of("1", "a")),
		"deleted":     streamtest.Remove("t", of("1", "third")),
	} {
		err := do(rec)
		if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), `template "orders-{tenant}" has made 2 different names`) || strings.Contains(err.Error(), "third") {
			t.Errorf("%s: %v", what, err)
		}
		if ops, err := p.Project(&rec); err != nil || len(ops) == 0 {
			t.Errorf("%s: Project counts, too: %v", what, err)
		}
	}
	if n := len(index.Writes.Calls()); n != written {
		t.Errorf("%d writes of records that were refused", n-written)
	}
	if err := do(streamtest.Modify("t", of("1", "a"), of("1", "b"))); err != nil {
		t.Error(err)
	}
	for _, op := range index.Writes.Values() {
		if op.IndexTemplate != "orders-{tenant}" || op.IndexLabel() != op.IndexTemplate || !strings.HasPrefix(op.Index, "orders-") {
			t.Errorf("%+v", op)
		}
	}
}

// A fixed name has no limit, and errors show it. The default limit is 100 names, also
// for concurrent records.
func TestMaxIndicesDefault(t *testing.T) {
	fixed := streamtest.NewIndex()
	p, err := New(fixed.Write, Options{Index: "orders", ID: "{pk}", MaxIndices: 1, Version: Unversioned()})
	if err != nil {
		t.Fatal(err)
	}
	if err := handle(t, p, streamtest.Insert("t", map[string]any{"pk": "a"})); err != nil {
		t.Fatal(err)
	}
	if op := fixed.Writes.Values()[0]; op.IndexTemplate != "" || op.IndexLabel() != "orders" {
		t.Errorf("%+v", op)
	}

	index := streamtest.NewIndex()
	if p, err = New(index.Write, Options{Index: "{tenant}", ID: "{pk}", Version: Unversioned()}); err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 120 {
		wg.Go(func() {
			err := handle(t, p, streamtest.Insert("t", map[string]any{"pk": "a", "tenant": fmt.Sprint("t", i)}))
			if err != nil {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	names := map[string]bool{}
	for _, op := range index.Writes.Values() {
		names[op.Index] = true
	}
	if len(names) != 100 || refused.Load() != 20 {
		t.Errorf("%d names, %d refused", len(names), refused.Load())
	}
	if _, err := New(nil, Options{Index: "{a}", ID: "{a}", Version: Unversioned(), MaxIndices: -1}); err == nil || !strings.Contains(err.Error(), "MaxIndices") {
		t.Error(err)
	}
}

// The logged text of a cluster's error has no id and no index name. A dead letter has
// both.
func TestErrorsShowTemplates(t *testing.T) {
	index := streamtest.NewIndex()
	p, err := New(index.Write, Options{Index: "orders-{tenant}", ID: "{pk}", Version: Unversioned()})
	if err != nil {
		t.Fatal(err)
	}
	op := document.Op{Action: document.Put, Index: "orders-acme", IndexTemplate: "orders-{tenant}", ID: "key-7"}
	index.Writes.FailNth(1, document.NewError(op, 400, "mapper_parsing_exception", "failed to parse field [n] in document with id 'key-7'"))
	err = handle(t, p, streamtest.Insert("t", map[string]any{"pk": "key-7", "tenant": "acme"}))
	if err == nil || strings.Contains(err.Error(), "key-7") || strings.Contains(err.Error(), "acme") || !strings.Contains(err.Error(), "orders-{tenant}") {
		t.Error(err)
	}
	var of *document.Error
	if !errors.As(err, &of) || of.Details()["id"] != "key-7" || of.Details()["index"] != "orders-acme" {
		t.Errorf("%+v", of)
	}
}
