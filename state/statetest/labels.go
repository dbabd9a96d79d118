package statetest

import (
	"fmt"
	"testing"

	"github.com/sluicehq/sluice/state"
)

// testLabels tests letters with labels.
func testLabels(t *testing.T, letters state.Letters) {
	l, ok := letters.(state.Labels)
	if !ok {
		return
	}
	want := func(what, want string) {
		t.Helper()
		got := ""
		for after := ""; ; {
			labels, err := l.ListLabels(t.Context(), "app", after, 2)
			if err != nil {
				t.Fatalf("%s: ListLabels: %v", what, err)
			}
			if len(labels) == 0 {
				break
			}
			for _, one := range labels {
				got += fmt.Sprintf("%s=%s ", one.ID, one.Data)
				after = one.ID
			}
		}
		if got != want {
			t.Fatalf("%s: labels %q, want %q", what, got, want)
		}
	}
	putLabelled := func(app, id, data, label string) {
		t.Helper()
		text := []byte(label)
		succeeds(t, "PutLabelled", l.PutLabelled(t.Context(), app, id, []byte(data), text))
		for i := range text {
			text[i] = 'X'
		}
	}
	want("of none", "")
	putLabelled("app", "1", "one", "a")
	putLabelled("app", "3", "three", "c")
	putLabelled("other", "4", "four", "d")
	put(t, l, "app", "2", "two")
	want("of four", "1=a 2= 3=c ")
	putLabelled("app", "1", "uno", "A")
	put(t, l, "app", "3", "tre")
	want("of letters that were replaced", "1=A 2= 3= ")
	if data, _, err := l.GetLetter(t.Context(), "app", "1"); string(data) != "uno" || err != nil {
		t.Fatalf("a letter with a label: %q, %v", data, err)
	}
	for _, again := range []string{"2=two 3=tre ", "3=tre "} {
		asked := ""
		succeeds(t, "LabelLetters", l.LabelLetters(t.Context(), "app", func(id string, data []byte) []byte {
			asked += fmt.Sprintf("%s=%s ", id, data)
			if id == "3" {
				return nil
			}
			return []byte("b")
		}))
		if asked != again {
			t.Fatalf("asked for labels of %q, want %q", asked, again)
		}
		want("after LabelLetters", "1=A 2=b 3= ")
	}
	succeeds(t, "DeleteLetter", l.DeleteLetter(t.Context(), "app", "1"))
	want("of letters that were deleted", "2=b 3= ")
}
