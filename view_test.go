package sluice

import "testing"

func TestView(t *testing.T) {
	for _, name := range []string{"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"} {
		v, err := ParseView(name)
		if err != nil || v.String() != name {
			t.Errorf("ParseView(%q) = %v, %v", name, v, err)
		}
	}
	if _, err := ParseView("new_image"); err == nil {
		t.Error("an unknown name was taken")
	}
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
