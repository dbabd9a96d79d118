package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fatih/color"
)

// screen prints the story. Colours are for terminals only, and NO_COLOR turns them
// off. The lines are the same in a pipe.
type screen struct {
	out   io.Writer
	begin time.Time
}

var (
	bold  = color.New(color.Bold).SprintFunc()
	faint = color.New(color.Faint).SprintFunc()
	green = color.New(color.FgGreen, color.Bold).SprintFunc()
	red   = color.New(color.FgRed, color.Bold).SprintFunc()
	cyan  = color.New(color.FgCyan).SprintFunc()
)

// title begins a part of the story.
func (s *screen) title(format string, args ...any) {
	fmt.Fprintf(s.out, "\n%s\n", bold(fmt.Sprintf(format, args...)))
}

// row prints one aligned line of a part.
func (s *screen) row(label, format string, args ...any) {
	fmt.Fprintf(s.out, "  %-16s %s\n", label, fmt.Sprintf(format, args...))
}

// change prints a write to the table.
func (s *screen) change(event, entity, key string) {
	at := fmt.Sprintf("%6.2fs", time.Since(s.begin).Seconds())
	fmt.Fprintf(s.out, "  %s  %-6s  %s %s\n", faint(at), event, bold(fmt.Sprintf("%-14s", entity)), key)
}

// handled prints what the daemon says about the change.
func (s *screen) handled(h handled) {
	switch h.Result {
	case "unrouted":
		s.effect("no route", "%s", faint("settled and counted"))
	case "done":
		s.effect("route", "%s %s in %s", cyan(h.Route), green("done"), ms(h.Took))
	case "skipped":
		s.effect("route", "%s skipped: %s", cyan(h.Route), strings.TrimPrefix(h.Reason, "skipped: "))
	default:
		s.effect("route", "%s %s: %s", cyan(h.Route), red(h.Result), h.Reason)
	}
}

// sent prints a message that came out of the queue.
func (s *screen) sent(m message, after time.Duration) {
	s.effect("queue", "%s, %s after the write", green("a message"), bold(ms(after)))
	s.effect("", "%s", faint(m.body))
}

func (s *screen) effect(label, format string, args ...any) {
	fmt.Fprintf(s.out, "           %-9s %s\n", label, fmt.Sprintf(format, args...))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }
