package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
)

// sender sends a message for each record.
type sender struct {
	route         string
	body          body
	delay         time.Duration
	fifo          bool
	group, dedupe *text
	send          func(context.Context, sluice.Message) error
}

func (b *builder) send(rt *Route, field string) (*built, error) {
	o := rt.Send
	q, err := b.sinks.queue(o.To, field+".to")
	if err != nil {
		return nil, err
	}
	s := &sender{route: rt.name(), delay: time.Duration(o.Delay), fifo: q.fifo, send: q.send}
	if s.body, err = parseBody(o.Body); err != nil {
		return nil, b.c.wrong(field+".body", err)
	}
	reads := s.body.reads
	switch {
	case s.delay < 0 || s.delay > message.MaxDelay:
		return nil, b.c.wrong(field+".delay", fmt.Errorf("%v is not from 0s to %v", s.delay, message.MaxDelay))
	case s.delay > 0 && q.fifo:
		return nil, b.c.wrong(field+".delay", fmt.Errorf("%s is a FIFO queue, which cannot delay a message: take a standard queue, or leave it out", q.name))
	case o.Dedupe != "" && !q.fifo:
		return nil, b.c.wrong(field+".dedupe", fmt.Errorf("%s is no FIFO queue, whose names end in .fifo: no other leaves out what was sent before", q.name))
	}
	for _, f := range []struct {
		name, source string
		into         **text
	}{{"group", o.Group, &s.group}, {"dedupe", o.Dedupe, &s.dedupe}} {
		if f.source == "" {
			continue
		}
		t, err := parseText(f.source)
		if err != nil {
			return nil, b.c.wrong(field+"."+f.name, err)
		}
		*f.into = &t
		reads |= t.reads
	}
	made := &built{handle: s.handle, options: needs(reads)}
	made.Explain = func(_ context.Context, rec *sluice.Record) ([]Effect, error) {
		m, err := s.message(rec)
		if err != nil {
			return nil, err
		}
		return []Effect{sent(q, m, m.DeduplicationID)}, nil
	}
	return made, nil
}

// sent is the effect of sending m.
func sent(q *queue, m sluice.Message, key string) Effect {
	does := "send to queue " + q.name
	if m.Delay > 0 {
		does += fmt.Sprintf(" in %v", m.Delay)
	}
	if m.GroupID != "" {
		does += " in the group " + m.GroupID
	}
	return Effect{Does: does, Sink: q.sink, Target: q.name, Key: key, Detail: m.Body}
}

func (s *sender) handle(ctx context.Context, rec *sluice.Record) error {
	m, err := s.message(rec)
	if err != nil {
		return sluice.Permanent(err)
	}
	return s.send(ctx, m)
}

// message is the same for the same record, whenever it is made.
func (s *sender) message(rec *sluice.Record) (m sluice.Message, err error) {
	body, err := s.body.make(nil, rec)
	if err != nil {
		return m, fmt.Errorf("the body of the message: %w", err)
	}
	m = sluice.Message{Body: string(body), Delay: s.delay}
	switch {
	case s.group != nil:
		if m.GroupID, err = s.id(s.group, rec); err != nil {
			return m, fmt.Errorf("the group of the message: %w", err)
		}
	case s.fifo:
		m.GroupID = asID(keyText(rec.Keys))
	}
	switch {
	case s.dedupe != nil:
		if m.DeduplicationID, err = s.id(s.dedupe, rec); err != nil {
			return m, fmt.Errorf("the dedupe key of the message: %w", err)
		}
	case s.fifo:
		// The route's name keeps the messages of two routes apart.
		m.DeduplicationID = asID(rec.EventID + "/" + s.route)
	}
	return m, nil
}

func (s *sender) id(t *text, rec *sluice.Record) (string, error) {
	id, err := t.append(nil, rec)
	if err != nil {
		return "", err
	}
	if len(id) == 0 {
		return "", errEmpty
	}
	return asID(string(id)), nil
}

// asID is a text as SQS takes it for a group or a deduplication id, which the
// hash of it is.
func asID(text string) string {
	if len(text) <= 128 && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// keyText is an item's key as a text. The order of its attributes is that of
// their names, since sources differ.
func keyText(keys sluice.Item) string {
	values := map[string]string{}
	var names []string
	for name, v := range keys.All() {
		text, _ := v.AppendText(nil)
		names = append(names, name)
		values[name] = string(text)
	}
	slices.Sort(names)
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = values[name]
	}
	return strings.Join(texts, "|")
}
