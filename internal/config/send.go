package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Send sends a message for each record.
type Send struct {
	// Sink of a queue.
	To string `yaml:"to" is:"required"`
	// "record" (event, table, sequence, keys, new, old), "new", "old", "keys", or a
	// template: '{"id":"{PK}","was":{$old.status}}'. A missing attribute is null;
	// within a text it fails the record. Default record.
	Body string `yaml:"body" default:"record"`
	// Delay of the message.
	Delay Duration `yaml:"delay" is:"min=0s,max=15m"`
	// Template of a FIFO queue's message group. Default: the item's key.
	Group string `yaml:"group"`
	// Template of a FIFO queue's deduplication id. Default: event id and route.
	Dedupe string `yaml:"dedupe"`
	// Message attributes: name to template, 10 at most. A template of one number
	// makes a Number, any other a String. Sluice leaves out empty attributes.
	Attributes Texts `yaml:"attributes"`
}

func (o *Send) check(c *Config, path string, _ *Route) {
	o.sender(func(field string, err error) { c.note(path+field, err) })
	s, ok := c.sink(path+".to", o.To, "sqs")
	switch fifo := ok && s.SQS.fifo(); {
	case fifo && o.Delay > 0:
		c.doc.add(path+".delay", "a FIFO queue cannot delay single messages; take a standard queue, or the queue's own delay")
	case ok && !fifo && o.Dedupe != "":
		c.doc.add(path+".dedupe", "it is for FIFO queues, whose names end in .fifo")
	}
}

func (o *Send) build(b *builder, path string, r *Route) (*built, error) {
	q := b.sinks.queue(o.To)
	s := o.sender(func(string, error) {}) // check reports the errors
	s.route, s.fifo, s.send = r.Name, q.fifo, q.send
	made := &built{handle: s.handle, options: needs(s.reads), sends: []sending{{queue: q, field: path + ".to"}}}
	made.Explain = func(_ context.Context, rec *sluice.Record) ([]Effect, error) {
		m, err := s.message(rec)
		if err != nil {
			return nil, err
		}
		e := sent(q, m, m.DeduplicationID)
		if names := slices.Sorted(maps.Keys(m.Attributes)); len(names) > 0 {
			e.Does += " with the attributes " + strings.Join(names, ", ")
			for _, name := range names {
				e.Detail += fmt.Sprintf(" %s=%q", name, m.Attributes[name].Value)
			}
		}
		return []Effect{e}, nil
	}
	return made, nil
}

// sender sends a message for each record.
type sender struct {
	route         string
	body          body
	delay         time.Duration
	fifo          bool
	group, dedupe *text
	attributes    map[string]*text
	reads         item.View // the images that the templates need
	send          func(context.Context, sluice.Message) error
}

// sender parses the templates. It calls note for each field, with its error or nil.
func (o *Send) sender(note func(field string, err error)) *sender {
	s := &sender{delay: time.Duration(o.Delay), attributes: map[string]*text{}}
	var err error
	s.body, err = parseBody(o.Body)
	note(".body", err)
	s.reads = s.body.reads
	template := func(field, source string) *text {
		if source == "" {
			return nil
		}
		t, err := parseText(source)
		note(field, err)
		s.reads |= t.reads
		return &t
	}
	s.group, s.dedupe = template(".group", o.Group), template(".dedupe", o.Dedupe)
	if n := len(o.Attributes); n > 10 {
		note(".attributes", fmt.Errorf("there are %d; SQS allows 10 in a message", n))
	}
	for _, a := range o.Attributes {
		field := join(".attributes", a.Name)
		note(field, wrongAttribute(a))
		s.attributes[a.Name] = template(field, a.Value)
	}
	return s
}

var (
	goodAttribute = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	awsAttribute  = regexp.MustCompile(`(?i)^(aws|amazon)\.`)
)

// wrongAttribute returns an error for an attribute that no message can have.
func wrongAttribute(a Text) error {
	switch {
	case a.Value == "":
		return errors.New("the template is empty, and so would be the attribute; want text, such as '{tenant}'")
	case len(a.Name) > 256 || !goodAttribute.MatchString(a.Name) || awsAttribute.MatchString(a.Name):
		return errors.New("SQS does not allow this name; want 1 to 256 letters, digits, _, - and single dots inside, and not the prefixes AWS. and Amazon.")
	case a.Name == "dedupeKey" || a.Name == "notBefore":
		return fmt.Errorf("%s is an attribute of Sluice's own messages; want another name", a.Name)
	}
	return nil
}

// sent returns the effect of sending m.
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

// message makes the message of a record, the same each time.
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
	for name, t := range s.attributes {
		a, ok, err := t.attribute(rec)
		if err != nil {
			return m, fmt.Errorf("the attribute %s of the message: %w", name, err)
		}
		if ok {
			if m.Attributes == nil {
				m.Attributes = map[string]sluice.MessageAttribute{}
			}
			m.Attributes[name] = a
		}
	}
	return m, nil
}

// attribute returns the text as a message attribute. ok is false if the text is empty,
// or the item lacks one of its attributes.
func (t *text) attribute(rec *sluice.Record) (a sluice.MessageAttribute, ok bool, err error) {
	if err := t.lacks(rec); err != nil {
		return a, false, err
	}
	image, keys := rec.Image(), beside(rec, t.wantsRecord)
	var v item.Value
	for _, path := range t.Paths() {
		if v, ok = lookup(path, image, keys); !ok || v.Kind() == item.NULL {
			return a, false, nil
		}
	}
	value, err := t.Append(nil, image, keys)
	a = sluice.MessageAttribute{Value: string(value)}
	if _, single := t.Single(); single && v.Kind() == item.N {
		a.Type = "Number"
	}
	return a, len(value) > 0, err
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

// asID makes a group or deduplication id that SQS accepts: the text, else its hash.
func asID(text string) string {
	if len(text) <= 128 && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// keyText writes an item's key as a text. It sorts the attributes by name, because
// sources differ in their order.
func keyText(keys sluice.Item) string {
	values := maps.Collect(keys.All())
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text, _ := values[name].AppendText(nil)
		texts = append(texts, string(text))
	}
	return strings.Join(texts, "|")
}
