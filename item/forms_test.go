package item

import (
	"encoding/binary"
	"testing"
)

// A wrong form only makes the parser slow, so that no other test sees it.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		mask, form uint64
		text       string // with a question mark for what the mask leaves out
	}{
		{attrMask, attrForm, `":{"?":?`},
		{setMask, setForm, `":{"?S":`},
		{^uint64(0), boolForm, `":{"BOOL`},
		{^uint64(0), nullForm, `":{"NULL`},
		{trueMask, trueForm, `":true}?`},
		{^uint64(0), falsForm, `":false}`},
		{valueMask, valueForm, `{"?":???`},
	} {
		var mask, form [8]byte
		for i := range tt.text {
			if tt.text[i] != '?' {
				mask[i], form[i] = 0xff, tt.text[i]
			}
		}
		if m := binary.LittleEndian.Uint64(mask[:]); m != tt.mask {
			t.Errorf("%s: the mask is %#x, wanted %#x", tt.text, tt.mask, m)
		}
		if f := binary.LittleEndian.Uint64(form[:]); f != tt.form {
			t.Errorf("%s: the form is %#x, wanted %#x", tt.text, tt.form, f)
		}
	}
}
