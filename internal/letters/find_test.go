package letters

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/state"
)

func TestFind(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	rec := record("a", 10)
	if err := b.Park(t.Context(), rec, failure("r")); err != nil {
		t.Fatal(err)
	}
	id := b.ID(rec, "r")
	for _, prefix := range []string{id, id[:41], id[:44], ShortID(id), ShortID(id)[:4], tail(id)} {
		if got, err := b.Find(t.Context(), prefix); got != id || err != nil {
			t.Errorf("%s: %s, %v", prefix, got, err)
		}
	}
	for _, prefix := range []string{"0", id[:3], ShortID(id)[:3], id + "0", "zzzz", ShortID(id)[1:]} {
		if got, err := b.Find(t.Context(), prefix); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("%q: %s, %v", prefix, got, err)
		}
	}
	for i := range 1200 { // more than are read at a time
		if err := b.store.PutLetter(t.Context(), "app", fmt.Sprintf("%040d-%016x", 100+i, i), []byte("no letter")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.Find(t.Context(), ShortID(id)); got != id || err != nil {
		t.Errorf("one of many: %s, %v", got, err)
	}
	if got, err := b.Find(t.Context(), "00000000000004a"); got != "" || err == nil || errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("one of many that cannot be told apart: %s, %v", got, err)
	}
	if got, err := b.Find(t.Context(), "00000000000004af"); !strings.HasSuffix(got, "00000000000004af") || err != nil { // which cannot be read, and is there
		t.Errorf("the last: %s, %v", got, err)
	}
	var ambiguous *AmbiguousError
	if _, err := b.Find(t.Context(), "0000"); !errors.As(err, &ambiguous) || len(ambiguous.IDs) != mostAlike || strings.Count(err.Error(), "-") != mostAlike {
		t.Errorf("%v", err)
	}
}
