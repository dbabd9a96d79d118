package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// trace is what happened in a history, in order. Lines are put into words only
// when somebody reads them.
type trace struct {
	began time.Time

	mu    sync.Mutex
	lines []line
}

type line struct {
	at     time.Duration
	life   int // 0: the world
	format string
	args   []any
}

// add notes something; the args must not change afterwards.
func (t *trace) add(life int, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{time.Since(t.began), life, format, args})
}

func (t *trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, l := range t.lines {
		who := "world "
		if l.life > 0 {
			who = fmt.Sprintf("life %d", l.life)
		}
		fmt.Fprintf(&b, "%14.6fs  %s  %s\n", l.at.Seconds(), who, fmt.Sprintf(l.format, l.args...))
	}
	return b.String()
}
