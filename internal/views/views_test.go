package views

import "testing"

func TestParse(t *testing.T) {
	for _, name := range []string{"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"} {
		v, err := Parse(name)
		if err != nil || v.String() != name {
			t.Errorf("Parse(%q) = %v, %v", name, v, err)
		}
	}
	for _, name := range []string{"", "new_image", "NEW_IMAGE or OLD_IMAGE"} {
		if v, err := Parse(name); err == nil {
			t.Errorf("Parse(%q) = %v", name, v)
		}
	}
}
