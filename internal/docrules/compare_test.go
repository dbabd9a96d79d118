package docrules

import (
	"encoding/json"
	"math/big"
	"testing"
)

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		path string
		same bool
	}{
		{`{"a":1,"b":[true,null]}`, `{ "b":[true,null], "a":1 }`, "", true},
		{`{"a":1}`, `{"a":1.0}`, "", true},
		{`{"a":100}`, `{"a":1e2}`, "", true},
		{`{"a":0.001}`, `{"a":1E-3}`, "", true},
		{`{"a":0}`, `{"a":-0.0e7}`, "", true},
		{`{"a":0}`, `{"a":0E9999919999}`, "", true},
		{`{"a":-0.0}`, `{"a":0e-99999999999}`, "", true},
		{`{"a":0}`, `{"a":1e-99999999999}`, "a", false},
		{`{"a":12345678901234567890123456789012345678}`, `{"a":12345678901234567890123456789012345679}`, "a", false},
		{`{"a":12345678901234567890123456789012345678}`, `{"a":1.2345678901234567890123456789012345678e37}`, "", true},
		{`{"a":1}`, `{"a":-1}`, "a", false},
		{`{"a":1}`, `{"a":"1"}`, "a", false},
		{`{"a":1e99999999999}`, `{"a":1e99999999999}`, "", true},
		{`{"a":1e99999999999}`, `{"a":10e99999999999}`, "a", false},
		{`{"a":1e2000000}`, `{"a":1e3000000}`, "a", false},
		{`{"a":1e-2000000}`, `{"a":1e-3000000}`, "a", false},
		{`{"a":"é"}`, `{"a":"\u00e9"}`, "", true},
		{`{"a":{"b":[{"c":1},{"c":2}]}}`, `{"a":{"b":[{"c":1},{"c":3}]}}`, "a.b[1].c", false},
		{`{"a":[1]}`, `{"a":[1,2]}`, "a[1]", false},
		{`{"a":[[1]]}`, `{"a":[[2]]}`, "a[0][0]", false},
		{`{"a":1,"z":1}`, `{"a":1}`, "z", false},
		{`{"a":1}`, `{"a":1,"z":null}`, "z", false},
		{`{"a":{}}`, `{"a":[]}`, "a", false},
		{`{"a":null}`, `{"a":false}`, "a", false},
		{`{"a":1}`, `{"a":1} {}`, "", false},
		{`{"a":1}`, ``, "", false},
	} {
		for _, turned := range []bool{false, true} {
			a, b := tt.a, tt.b
			if turned {
				a, b = b, a
			}
			if path, same := Compare([]byte(a), []byte(b)); path != tt.path || same != tt.same {
				t.Errorf("%s and %s: %q, %v, want %q, %v", a, b, path, same, tt.path, tt.same)
			}
		}
	}
}

// Two numbers are one when exact arithmetic says so.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"1", "1.0", "10e-1", "-0", "0.10", "1e400", "123.450e-7", "0E9999919999"} {
		f.Add(s, "1.00")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := exact(a), exact(b)
		if x == nil || y == nil {
			return
		}
		if same := decimal(a) == decimal(b); same != (x.Cmp(y) == 0) {
			t.Errorf("%s and %s are the same: %v", a, b, same)
		}
	})
}

// exact returns the value of a JSON number. It returns nil for other text, and for a
// number that takes too long.
func exact(s string) *big.Rat {
	var n json.Number
	if len(s) > 12 || json.Unmarshal([]byte(s), &n) != nil || string(n) != s {
		return nil
	}
	if d := decimal(s); d.exponent > 1000 || d.exponent < -1000 {
		return nil
	}
	r, _ := new(big.Rat).SetString(s)
	return r
}
