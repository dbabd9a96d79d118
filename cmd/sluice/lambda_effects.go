package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// effects is one invocation's metrics.
type effects struct {
	Records  sum            `json:"records"`
	Settled  sum            `json:"settled"`
	Unrouted sum            `json:"unrouted"`
	Routes   []routeEffects `json:"routes"`
	Sinks    []sinkEffects  `json:"sinks"`
}

type routeEffects struct {
	Route    string `json:"route"`
	Done     sum    `json:"done"`
	Skipped  sum    `json:"skipped"`
	Filtered sum    `json:"filtered"`
	Parked   sum    `json:"parked"`
	Failed   sum    `json:"failed"`
}

type sinkEffects struct {
	Sink     string `json:"sink"`
	Items    sum    `json:"items"`
	Failures sum    `json:"failures"`
}

func (e *effects) text(line func(name, format string, args ...any)) {
	line("records", "%d, %d settled%s", e.Records, e.Settled, more(e.Unrouted, "taken by no route"))
	for _, r := range e.Routes {
		line("route", "%s: %d done%s", plain(r.Route), r.Done, more(r.Skipped, "skipped")+more(r.Filtered, "passed over by its conditions")+more(r.Parked, "parked")+more(r.Failed, "failed"))
	}
	for _, s := range e.Sinks {
		line("sink", "%s: %d sent or written%s", plain(s.Sink), s.Items-s.Failures, more(s.Failures, "failed"))
	}
}

// sum adds up the numbers that it is decoded from: a number of the embedded metric
// format, or several.
type sum int

func (s *sum) UnmarshalJSON(data []byte) error {
	var all []float64
	if data[0] != '[' {
		data = fmt.Appendf(nil, "[%s]", data)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, v := range all {
		*s += sum(v)
	}
	return nil
}

// addLine adds the metrics of a line of the function's output, if it has any: a line
// of the embedded metric format that package metrics/emf writes, of an invocation, or
// of a route or a sink, which may have several.
func (e *effects) addLine(line []byte) bool {
	var m struct {
		Route, Sink                                                          *string
		Invocations, Records, Settled, Unrouted, CommitItems, CommitFailures sum
	}
	if !bytes.HasPrefix(line, []byte(`{"_aws":`)) || json.Unmarshal(line, &m) != nil {
		return false
	}
	switch {
	case m.Route != nil:
		r := of(&e.Routes, func(r routeEffects) bool { return r.Route == *m.Route })
		return json.Unmarshal(line, r) == nil
	case m.Sink != nil:
		s := of(&e.Sinks, func(s sinkEffects) bool { return s.Sink == *m.Sink })
		*s = sinkEffects{*m.Sink, s.Items + m.CommitItems, s.Failures + m.CommitFailures}
	case m.Invocations > 0:
		e.Records, e.Settled, e.Unrouted = m.Records, m.Settled, m.Unrouted
	}
	return true
}

// of returns the one of all that is, or a new one: metrics of one route or sink have
// several lines.
func of[T any](all *[]T, is func(T) bool) *T {
	i := slices.IndexFunc(*all, is)
	if i < 0 {
		i = len(*all)
		*all = append(*all, *new(T))
	}
	return &(*all)[i]
}

// functionLog takes a function's output apart: metrics, and the lines of its log.
// It is not safe for concurrent use: a process that has it for both outputs
// writes to it from one goroutine.
type functionLog struct {
	live    io.Writer // gets the log as it comes; may be nil
	lines   []string
	effects *effects // nil until there were metrics
	rest    []byte   // of a line
}

func (l *functionLog) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.line(line)
		l.rest = rest
	}
}

// end handles the text after the last newline.
func (l *functionLog) end() {
	if len(l.rest) > 0 {
		l.line(l.rest)
		l.rest = nil
	}
}

func (l *functionLog) line(line []byte) {
	e := l.effects
	if e == nil {
		e = &effects{Routes: []routeEffects{}, Sinks: []sinkEffects{}}
	}
	if e.addLine(line) {
		l.effects = e
		return
	}
	l.lines = append(l.lines, string(line))
	if l.live != nil {
		fmt.Fprintf(l.live, "%s\n", line)
	}
}
