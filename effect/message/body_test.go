package message

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	now := time.Date(2019, 12, 30, 19, 32, 15, 0, time.UTC)
	for _, tt := range []struct {
		wait, want time.Duration
	}{
		{-time.Second, 0},
		{-time.Nanosecond, 0},
		{0, 0},
		{1, time.Second},
		{time.Second, time.Second},
		{time.Second + 1, 2 * time.Second},
		{899*time.Second + 1, 900 * time.Second},
		{900 * time.Second, 900 * time.Second},
		{900*time.Second + 1, 900 * time.Second},
		{math.MaxInt64, 900 * time.Second},
	} {
		if got := Delay(now.Add(tt.wait), now, 900*time.Second); got != tt.want {
			t.Errorf("Delay of %v = %v, want %v", tt.wait, got, tt.want)
		}
	}
	if got := Delay(now.AddDate(1000, 0, 0), now, math.MaxInt64); got != time.Duration(math.MaxInt64).Truncate(time.Second) {
		t.Errorf("longest delay %v", got)
	}
	if got := Delay(now.Add(1400*time.Millisecond), now, 1500*time.Millisecond); got != time.Second {
		t.Errorf("delay under a limit of 1.5 s: %v, want whole seconds", got)
	}
}

func TestBody(t *testing.T) {
	var b Body
	if got := string(b.Bytes()); got != `{}` {
		t.Errorf("empty: %s", got)
	}
	at := time.Date(2019, 12, 30, 20, 32, 14, 0, time.FixedZone("", 3600))
	b.Str("kind", "a").Int("v", -1).Time("at", at)
	if got, want := string(b.Bytes()), `{"kind":"a","v":-1,"at":"2019-12-30T19:32:14Z"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := string(b.JSON("x", []byte(`[1]`)).Bytes()), `{"kind":"a","v":-1,"at":"2019-12-30T19:32:14Z","x":[1]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	before := string(b.Bytes())
	first := b.Bytes()
	b.Str("more", "x")
	if string(first) != before {
		t.Error("what Bytes returned changed")
	}
}

func TestBodyEscapes(t *testing.T) {
	for _, s := range []string{"", `"\/`, "\x00\x1f\n\t\x7f", "<&>", "größe\u2028🙂", "a\xffb", "\ufffd\ufffe\uffff"} {
		var b Body
		got := b.Str(s, s).Bytes()
		var back map[string]string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		want := string([]rune(s)) // what is no UTF-8 becomes U+FFFD
		if back[want] != want {
			t.Errorf("%q: %s", s, got)
		}
	}
	var no Body // SQS refuses these two as they are
	if got := string(no.Str("a", "\ufffd\ufffe\uffff").Bytes()); got != `{"a":"`+"\ufffd"+`\ufffe\uffff"}` {
		t.Error(got)
	}
	var b Body
	if got := string(b.Str("a", "<&>/").Bytes()); got != `{"a":"<&>/"}` {
		t.Errorf("escaped more than JSON wants: %s", got)
	}
}
