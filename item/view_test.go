package item

import "testing"

func TestView(t *testing.T) {
	has := [4][8]bool{ // has[view][need]
		KeysOnly:   {KeysOnly: true},
		NewImage:   {KeysOnly: true, NewImage: true, AnyImage: true, AnyImage | NewImage: true},
		OldImage:   {KeysOnly: true, OldImage: true, AnyImage: true, AnyImage | OldImage: true},
		BothImages: {true, true, true, true, true, true, true, true},
	}
	if s := AnyImage.String(); s != "NEW_IMAGE or OLD_IMAGE" {
		t.Errorf("AnyImage is %q", s)
	}
	if s := (AnyImage | OldImage).String(); s != "OLD_IMAGE" {
		t.Errorf("AnyImage and OldImage are %q", s)
	}
	for v := range has {
		for need, want := range has[v] {
			if got := View(v).Has(View(need)); got != want {
				t.Errorf("%v.Has(%v) = %v", View(v), View(need), got)
			}
		}
	}
}
