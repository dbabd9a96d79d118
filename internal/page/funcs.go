package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/letters"
)

// funcs are the functions of the templates.
var funcs = template.FuncMap{
	"seconds":    seconds,
	"ago":        ago,
	"since":      func(t time.Time) string { return seconds(time.Since(t).Seconds()) },
	"stamp":      stamp,
	"hours":      hours,
	"bytes":      sizeOf,
	"count":      count,
	"rate":       rate,
	"took":       took,
	"plural":     plural,
	"cut":        cut,
	"visible":    visible,
	"short":      letters.ShortID,
	"sparkline":  sparkline,
	"letterLink": letterLink,
	"loss":       lossLevel,
	"percent":    percent,
	"text":       func(b []byte) string { return string(b) },
	"add":        func(a, b int) int { return a + b },
	"join":       strings.Join,
}

// plural counts things whose name gets an s when they are several.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + one + "s"
}

// count is a whole number with a space between thousands.
func count(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u2009" + digits[i:]
	}
	return digits
}

// seconds is a duration to two units, such as 3 h 12 min.
func seconds(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case d < time.Second:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Truncate(time.Second).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return hours(Hours(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

func hours(h Hours) string {
	if h < 0 {
		return "unknown"
	}
	if h < 1 {
		return fmt.Sprintf("%d min", int(h*60))
	}
	return fmt.Sprintf("%d h %d min", int(h), int(h*60)%60)
}

func ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return seconds(time.Since(t).Seconds()) + " ago"
}

// stamp is a time in UTC, which is that of the log; empty when it is unknown.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func sizeOf(of any) string {
	n, _ := strconv.ParseInt(fmt.Sprint(of), 10, 64)
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func rate(perSecond float64) string {
	if perSecond >= 10 || perSecond == 0 {
		return fmt.Sprintf("%.0f/s", perSecond)
	}
	return fmt.Sprintf("%.2g/s", perSecond)
}

// took is the duration of a call; a dash when there was none.
func took(s float32) string {
	switch d := time.Duration(float64(s) * float64(time.Second)); {
	case d == 0:
		return "–"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
}

func percent(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return min(100, part*100/whole)
}

// lossLevel is how bad it is that data is lost in so many hours.
func lossLevel(h Hours) string {
	switch {
	case h < 0:
		return ""
	case h < closeLoss:
		return "bad"
	case h < nearLoss:
		return "look"
	}
	return "good"
}

// cut is the beginning of a long text, as visible shows it.
func cut(most int, s string) string {
	if len(s) <= most {
		return visible(s)
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return visible(s[:most]) + "…"
}

// visible shows the characters that change the direction of the text behind them. With
// them an item or an error could make a page say something else.
func visible(s string) string { return directions.Replace(s) }

var directions = func() *strings.Replacer {
	var pairs []string
	for _, c := range "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" {
		pairs = append(pairs, string(c), fmt.Sprintf("\\u%04x", c))
	}
	return strings.NewReplacer(pairs...)
}()

// countQuery is the filter that selects the letters of a count.
func countQuery(c deadletter.Count) url.Values {
	return letters.Query(deadletter.Filter{Kind: c.Kind, Route: c.Route, Table: c.Table})
}
