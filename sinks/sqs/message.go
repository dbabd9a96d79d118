package sqs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
)

// sizeOf returns the size that SQS counts against its limits.
func sizeOf(m *sluice.Message) int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		n += len(name) + len(typeOf(a)) + len(a.Value) + len(a.Bytes)
	}
	return n
}

// typeOf returns the type of an attribute, which is a String by default.
func typeOf(a sluice.MessageAttribute) string { return cmp.Or(a.Type, "String") }

// validate returns why SQS would never accept m.
func validate(m *sluice.Message, fifo bool, maxBytes int) error {
	if m.Body == "" {
		return errors.New("the body is empty; SQS wants at least one character")
	}
	if at := badChar(m.Body); at >= 0 {
		return fmt.Errorf("the body has a character at byte %d that SQS does not allow (control characters other than tab, line feed and carriage return, U+FFFE, U+FFFF, invalid UTF-8)", at)
	}
	if size := sizeOf(m); size > maxBytes {
		return fmt.Errorf("body and attributes are %d bytes, more than the limit of %d", size, maxBytes)
	}
	if m.Delay < 0 || m.Delay > maxDelay {
		return fmt.Errorf("a delay of %v is not possible; SQS allows 0s to %v: send with %[2]v and let the consumer send the same message again until its time has come", m.Delay, maxDelay)
	}
	switch {
	case fifo && m.Delay > 0:
		return fmt.Errorf("a FIFO queue cannot delay a single message (by %v); use a standard queue, or the queue's own DelaySeconds", m.Delay)
	case fifo && m.GroupID == "":
		return errors.New("a FIFO queue needs a GroupID: messages of one group keep their order")
	case !fifo && m.DeduplicationID != "":
		return errors.New("a DeduplicationID is for FIFO queues, whose names end in .fifo")
	}
	if err := validID("GroupID", m.GroupID); err != nil {
		return err
	}
	if err := validID("DeduplicationID", m.DeduplicationID); err != nil {
		return err
	}
	return validateAttributes(m)
}

func validateAttributes(m *sluice.Message) error {
	if n := len(m.Attributes); n > maxAttributes {
		return fmt.Errorf("%d attributes; SQS allows %d", n, maxAttributes)
	}
	for name, a := range m.Attributes {
		if !validName(name) {
			return fmt.Errorf("attribute name %q; SQS allows 1 to 256 letters, digits, _, - and single dots inside, and not the prefixes AWS. and Amazon.", name)
		}
		typ := typeOf(a)
		kind, _, _ := strings.Cut(typ, ".")
		switch {
		case len(typ) > 256 || !slices.Contains([]string{"String", "Number", "Binary"}, kind):
			return fmt.Errorf("attribute %q is of type %q; SQS allows String, Number and Binary, and after a dot a label, 256 characters in all", name, typ)
		case kind == "Binary" && (len(a.Bytes) == 0 || a.Value != ""):
			return fmt.Errorf("attribute %q of type %s needs a value in Bytes, and none in Value", name, typ)
		case kind != "Binary" && (a.Value == "" || a.Bytes != nil):
			return fmt.Errorf("attribute %q of type %s needs a value in Value that is not empty, and none in Bytes", name, typ)
		case badChar(a.Value) >= 0:
			return fmt.Errorf("attribute %q has a character at byte %d that SQS does not allow", name, badChar(a.Value))
		}
	}
	return nil
}

// badChar returns the index of the first character that SQS refuses, or -1.
// Allowed are #x9 #xA #xD, #x20–#xD7FF, #xE000–#xFFFD and #x10000–#x10FFFF.
func badChar(s string) int {
	for i, r := range s {
		switch {
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0xFFFE, r == 0xFFFF:
			return i
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			return i
		}
	}
	return -1
}

func validName(name string) bool {
	lower := strings.ToLower(name)
	if name == "" || len(name) > 256 || strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.") ||
		strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	})
}

func validID(field, id string) error {
	const allowed = "SQS allows up to 128 letters, digits and punctuation characters"
	if len(id) > 128 {
		return fmt.Errorf("%s of %d bytes; %s", field, len(id), allowed)
	}
	if at := strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }); at >= 0 { // the error omits the id, which may be a key
		return fmt.Errorf("%s with another character at byte %d; %s", field, at, allowed)
	}
	return nil
}

// entry is a pending message.
type entry struct {
	types.SendMessageBatchRequestEntry // without Id, which each request assigns
	size                               int
	group                              string // of a FIFO queue

	// behind has the failed groups of a SendAll, each with the error of the
	// message that failed; nil for a Send. Commits of one SendAll run one after
	// another.
	behind map[string]error

	// Of its commit.
	tries int
	err   error // of the last try; nil: the queue has it, or it was not tried
	again bool  // refused temporarily: retry in this commit
}

func newEntry(m *sluice.Message, fifo bool) *entry {
	e := &entry{size: sizeOf(m)}
	e.MessageBody = &m.Body
	e.DelaySeconds = int32((m.Delay + time.Second - 1) / time.Second)
	if m.GroupID != "" {
		e.MessageGroupId = &m.GroupID
	}
	if m.DeduplicationID != "" {
		e.MessageDeduplicationId = &m.DeduplicationID
	}
	if fifo {
		e.group = m.GroupID
	}
	if len(m.Attributes) > 0 {
		e.MessageAttributes = make(map[string]types.MessageAttributeValue, len(m.Attributes))
		for name, a := range m.Attributes {
			v := types.MessageAttributeValue{DataType: aws.String(typeOf(a)), BinaryValue: a.Bytes}
			if a.Bytes == nil {
				v.StringValue = aws.String(a.Value)
			}
			e.MessageAttributes[name] = v
		}
	}
	return e
}
