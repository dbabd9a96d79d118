package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// counting tells how many items were gone through: by a bar at a terminal, by
// lines elsewhere.
type counting struct {
	out  io.Writer
	what string
	bar  *progressbar.ProgressBar // nil: lines
	n    int
	told time.Time
	now  func() time.Time
}

func newCounting(out io.Writer, what string) *counting {
	c := &counting{out: out, what: what, now: time.Now}
	c.told = c.now()
	if isTerminal(out) {
		c.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(out), progressbar.OptionShowCount(),
			progressbar.OptionSetDescription(what), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return c
}

func (c *counting) one() { c.to(c.n + 1) }

// to tells that there are n so far.
func (c *counting) to(n int) {
	c.n = n
	switch now := c.now(); {
	case c.bar != nil:
		_ = c.bar.Set(n)
	case now.Sub(c.told) >= lineEvery:
		c.told = now
		fmt.Fprintf(c.out, "%s: %d so far\n", c.what, c.n)
	}
}

// clear takes the bar away, so that a line can be printed.
func (c *counting) clear() {
	if c.bar != nil {
		_ = c.bar.Clear()
	}
}

func (c *counting) end() {
	if c.bar != nil {
		_ = c.bar.Finish()
	}
}
