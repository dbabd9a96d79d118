package main

import (
	"bytes"
	"testing"
	"time"
)

func TestCountingLines(t *testing.T) {
	var out bytes.Buffer
	c := newCounting(&out, "items and documents looked at")
	at := c.told
	c.now = func() time.Time { return at }
	c.to(400)
	at = at.Add(lineEvery - 1)
	c.to(800)
	at = at.Add(1)
	c.to(1200)
	at = at.Add(lineEvery)
	c.one()
	c.clear()
	c.end()
	if want := "items and documents looked at: 1200 so far\nitems and documents looked at: 1201 so far\n"; out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}
