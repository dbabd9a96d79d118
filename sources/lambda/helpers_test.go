package lambda

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if functionDir != "" {
			os.RemoveAll(functionDir) //nolint:errcheck // a temporary folder
		}
		os.Exit(code)
	}))
}

// matcher sends every record to its routes.
type matcher []*sluice.Route

func (m matcher) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, m...), nil
}

func (m matcher) Routes() []*sluice.Route { return m }

func one(h sluice.Handler) matcher { return matcher{{Name: "only", Handler: h}} }

// none is no sequence number.
const none = 0

// short writes n for the nth sequence number of the stream, wherever s has one.
func short(s string) string {
	return sequenceNumber.ReplaceAllStringFunc(s, func(number string) string { return fmt.Sprint(recordtest.Nth(number)) })
}

// withNumbers writes the nth sequence number of the stream for each #n of s.
func withNumbers(s string) string {
	return placeOfNumber.ReplaceAllStringFunc(s, func(place string) string {
		n, _ := strconv.Atoi(place[1:])
		return string(recordtest.Sequence(n))
	})
}

var placeOfNumber = regexp.MustCompile(`#[0-9]+`)

var sequenceNumber = regexp.MustCompile(`\b[0-9]{21,40}\b`)

// change is one record of a test's event.
type change struct {
	name     string // eventName, default INSERT
	item     string // key, default "a"
	seq      int    // which sequence number of the stream; none leaves it out
	id       string // eventID, default "e" + seq; "-" leaves it out
	do       string // attribute "do" of the new image
	view     string
	pad      int
	raw      string // replaces the attributes of the new image
	identity bool   // of the TTL's deletions
}

func (c change) json() string {
	if c.name == "" {
		c.name = "INSERT"
	}
	if c.item == "" {
		c.item = "a"
	}
	if c.id == "" {
		c.id = fmt.Sprint("e", c.seq)
	}
	if c.view == "" {
		c.view = "NEW_AND_OLD_IMAGES"
	}
	image := fmt.Sprintf(`"entityType":{"S":"search"},"do":{"S":%q},"pad":{"S":%q}`, c.do, strings.Repeat("x", c.pad))
	if c.raw != "" {
		image = c.raw
	}
	which := "NewImage"
	if c.name == "REMOVE" {
		which = "OldImage"
	}
	var b strings.Builder
	b.WriteString(`{`)
	if c.id != "-" {
		fmt.Fprintf(&b, `"eventID":%q,`, c.id)
	}
	if c.identity {
		b.WriteString(`"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},`)
	}
	fmt.Fprintf(&b, `"eventName":%q,"eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1",`, c.name)
	fmt.Fprintf(&b, `"dynamodb":{"ApproximateCreationDateTime":1740818400,"Keys":{"pk":{"S":%q}},%q:{"pk":{"S":%[1]q},%[3]s},`, c.item, which, image)
	if c.seq != none {
		fmt.Fprintf(&b, `"SequenceNumber":%q,`, recordtest.Sequence(c.seq))
	}
	fmt.Fprintf(&b, `"SizeBytes":10,"StreamViewType":%q},`, c.view)
	b.WriteString(`"eventSourceARN":"arn:aws:dynamodb:eu-west-1:000000000000:table/manhunt/stream/2025-03-01T08:30:00.125"}`)
	return b.String()
}

func array(cs ...change) []byte {
	parts := make([]string, len(cs))
	for i, c := range cs {
		parts[i] = c.json()
	}
	return []byte("[" + strings.Join(parts, ",") + "]")
}

func event(cs ...change) []byte {
	return append(append([]byte(`{"Records":`), array(cs...)...), '}')
}

func do(rec *sluice.Record) string {
	v, _ := rec.Image().Lookup("do")
	return v.Str()
}

// recorder remembers the records of handlers.
type recorder struct {
	mu    sync.Mutex
	calls []string
}

func (r *recorder) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, s)
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func logTo(b *syncBuffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// invoke runs one event through h and fails the test on an error.
func invoke(t *testing.T, ctx context.Context, h lambda.Handler, payload []byte) string {
	t.Helper()
	answer, err := h.Invoke(ctx, payload)
	if err != nil {
		t.Fatalf("Invoke: %v", err)
	}
	return string(answer)
}

const allDone = `{"batchItemFailures":[]}`

func failsFrom(seq int) string { return failsFromID(string(recordtest.Sequence(seq))) }

func failsFromID(id string) string {
	return `{"batchItemFailures":[{"itemIdentifier":"` + id + `"}]}`
}
