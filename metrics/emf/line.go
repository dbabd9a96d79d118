package emf

import (
	"strconv"
	"strings"
	"time"
)

type unit string

const (
	counts       unit = "Count"
	milliseconds unit = "Milliseconds"
)

// line is one document. The declaration of its metrics comes first; their values
// are buffered aside and follow. It has at most a few kilobytes: dimensions, and
// 100 values of each metric.
type line struct {
	m      *Metrics
	dst    []byte
	values []byte
	some   bool // a metric was written
}

// begin starts a line with an extra dimension.
func (m *Metrics) begin(dst []byte, now time.Time, dimension, value string) line {
	l := line{m: m, dst: dst, values: m.spare[:0]}
	l.dst = append(l.dst, `{"_aws":{"Timestamp":`...)
	l.dst = strconv.AppendInt(l.dst, now.UnixMilli(), 10)
	l.dst = append(l.dst, `,"CloudWatchMetrics":[{"Namespace":`...)
	l.dst = appendString(l.dst, m.namespace)
	l.dst = append(l.dst, `,"Dimensions":[[`...)
	add := func(name, value string) {
		if len(l.values) > 0 { // it is not the first
			l.dst = append(l.dst, ',')
		}
		l.dst = appendString(l.dst, name)
		l.field(name, value)
	}
	for _, d := range m.dimensions {
		add(d.name, d.value)
	}
	if dimension != "" {
		add(dimension, value)
	}
	l.dst = append(l.dst, `]],"Metrics":[`...)
	return l
}

// field adds a text field that is not a metric.
func (l *line) field(name, value string) {
	l.name(name)
	l.values = appendString(l.values, value)
}

func (l *line) name(name string) {
	l.values = append(l.values, ',')
	l.values = appendString(l.values, name)
	l.values = append(l.values, ':')
}

func (l *line) metric(name string, u unit) {
	if l.some {
		l.dst = append(l.dst, ',')
	}
	l.some = true
	l.dst = append(l.dst, `{"Name":`...)
	l.dst = appendString(l.dst, name)
	l.dst = append(l.dst, `,"Unit":`...)
	l.dst = appendString(l.dst, string(u))
	l.dst = append(l.dst, '}')
	l.name(name)
}

// count adds a metric with all digits of its value.
func (l *line) count(name string, u unit, n float64) {
	l.metric(name, u)
	l.values = strconv.AppendFloat(l.values, n, 'f', -1, 64)
}

// sample adds a metric with its values, or nothing if it has none.
func (l *line) sample(name string, u unit, s *sample) {
	if s.seen == 0 {
		return
	}
	l.metric(name, u)
	for i, v := range s.values() {
		l.values = append(l.values, "[,"[min(i, 1)])
		l.values = appendNumber(l.values, v)
	}
	l.values = append(l.values, ']')
}

func (l *line) end() []byte {
	l.dst = append(l.dst, `]}]}`...)
	l.dst = append(l.dst, l.values...)
	l.m.spare = l.values
	return append(l.dst, "}\n"...)
}

// appendNumber keeps six digits, which is enough for a latency.
func appendNumber(dst []byte, v float64) []byte { return strconv.AppendFloat(dst, v, 'g', 6, 64) }

// appendString appends a text made by clean.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

// clean makes s a valid dimension value: printable ASCII, not empty, at most most
// bytes, without a leading colon.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '_'
		}
		return r
	}, s)
	s = s[:min(len(s), most)]
	if strings.TrimSpace(s) == "" || s[0] == ':' {
		return ("_" + s)[:min(len(s)+1, most)]
	}
	return s
}
