package audit

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

func TestIDSet(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	s := newIDSet()
	const n = 300_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		s.add(document.Ref{Index: "things", ID: fmt.Sprint(i)})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := float64(after.HeapAlloc-before.HeapAlloc) / n; each > 16 {
		t.Errorf("%.1f bytes a document, want at most 16", each)
	}
	for i := range n {
		if !s.has(document.Ref{Index: "things", ID: fmt.Sprint(i)}) {
			t.Fatalf("%d is not in it", i)
		}
	}
	for _, ref := range []document.Ref{
		{Index: "things", ID: fmt.Sprint(n)}, {Index: "other", ID: "1"}, {Index: "things", ID: "1", Routing: "1"}, {Index: "thing", ID: "s1"},
	} {
		if s.has(ref) {
			t.Errorf("%v is in it", ref)
		}
	}
	s.add(document.Ref{Index: "late", ID: "1"})
	if !s.has(document.Ref{Index: "late", ID: "1"}) {
		t.Error("what was added after a look is not in it")
	}
}
