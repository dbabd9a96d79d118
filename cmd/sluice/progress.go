package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/sluicehq/sluice/internal/snapshot"
)

// lineEvery is the time between two plain lines.
const lineEvery = 10 * time.Second

// show tells the progress of a backfill: a bar at a terminal, lines elsewhere.
type show struct {
	json *json.Encoder // nil: for people
	out  io.Writer
	bar  *progressbar.ProgressBar // nil: lines
	now  func() time.Time

	mu     sync.Mutex
	begun  time.Time
	first  int64 // settled when it began
	told   time.Time
	before bool // it was finished when it began
}

func newShow(asJSON bool, stdout, stderr io.Writer) *show {
	s := &show{out: stderr, now: time.Now}
	switch {
	case asJSON:
		s.json = json.NewEncoder(stdout)
	case isTerminal(stderr):
		s.bar = newBar(stderr, 100*time.Millisecond)
	}
	return s
}

// newBar is a bar that is drawn at most once in every.
func newBar(out io.Writer, every time.Duration) *progressbar.ProgressBar {
	return progressbar.NewOptions64(-1, progressbar.OptionSetWriter(out), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(every))
}

// line is one line of --json.
type line struct {
	snapshot.Progress
	ETA float64 `json:"etaSeconds,omitempty"` // absent when unknown
}

func (s *show) progress(p snapshot.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.begun.IsZero() {
		s.begun, s.first, s.before = now, p.Settled, p.Finished
	}
	eta := s.eta(p, now)
	switch {
	case s.json != nil:
		_ = s.json.Encode(line{p, eta.Seconds()})
	case s.before: // see end
	case s.bar != nil:
		s.bar.ChangeMax64(max(p.TableItems, p.Items, 1))
		s.bar.Describe(describe(p, eta))
		_ = s.bar.Set64(p.Settled)
	case p.Finished || now.Sub(s.told) >= lineEvery:
		s.told = now
		fmt.Fprintf(s.out, "%s: %d of about %d items, %s\n", p.Table, p.Settled, max(p.TableItems, p.Items), describe(p, eta))
	}
}

func describe(p snapshot.Progress, eta time.Duration) string {
	text := fmt.Sprintf("%d of %d segments, %.0f read units", p.Done, p.Segments, p.Units)
	switch {
	case p.Finished:
		return text + ", finished"
	case eta > 0:
		return text + ", about " + eta.Round(time.Second).String() + " to go"
	}
	return text
}

// eta is the time for the rest at the pace of this process; 0 when unknown.
func (s *show) eta(p snapshot.Progress, now time.Time) time.Duration {
	done, rest, took := p.Settled-s.first, p.TableItems-p.Settled, now.Sub(s.begun)
	if done <= 0 || rest <= 0 || took <= 0 || p.Finished {
		return 0
	}
	return time.Duration(float64(took) * float64(rest) / float64(done))
}

// end leaves the bar as it is, and says what else there is to say.
func (s *show) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil && !s.begun.IsZero() && !s.before {
		fmt.Fprintln(s.out)
	}
	if err == nil && s.before {
		fmt.Fprintln(s.out, "the backfill was finished before: nothing was read (--again reads the table again)")
	}
}
