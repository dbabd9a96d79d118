package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/reread"
	"github.com/sluicehq/sluice/router"
)

// world has the results of a replay.
type world struct {
	mu      sync.Mutex
	handled []string // "route key sequence origin"
	parked  []string // "route key sequence: error"
	bad     []string // "line: error"
	fails   map[string]error
	block   func(key string)
}

func (w *world) Park(_ context.Context, rec *sluice.Record, f sluice.Failure) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parked = append(w.parked, fmt.Sprintf("%s %s %d: %v", f.Route, key(rec), recordtest.Nth(rec.Sequence), f.Last))
	return nil
}

func key(rec *sluice.Record) string {
	v, _ := rec.Keys.Lookup("pk")
	return v.Str()
}

func (w *world) routes() *router.Router {
	r := router.New(router.TypeFrom(router.Table(map[string]string{"test": "t"})))
	for _, name := range []string{"one", "two"} {
		r.Handle("t#*", func(_ context.Context, rec *sluice.Record) error {
			if w.block != nil {
				w.block(key(rec))
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.handled = append(w.handled, fmt.Sprintf("%s %s %d %v", name, key(rec), recordtest.Nth(rec.Sequence), rec.Origin))
			return w.fails[name+" "+key(rec)]
		}, router.Name(name), router.Redrive())
	}
	return r
}

func (w *world) options() Options {
	return Options{
		Flow: flow.Options{DeadLetter: w},
		Bad: func(b Bad) error {
			w.bad = append(w.bad, fmt.Sprintf("%d: %v", b.Line, b.Err))
			return nil
		},
		// A letter of the test: {"letter":<record>,"route":…}.
		Letter: func(data []byte) (l Letter, ok bool, err error) {
			var v struct {
				Letter     json.RawMessage
				Route      string
				Unreadable int
			}
			if json.Unmarshal(data, &v) == nil && v.Unreadable > 0 {
				return l, false, errors.New("of another version")
			}
			if json.Unmarshal(data, &v) != nil || v.Letter == nil {
				return l, false, nil
			}
			return Letter{sluice.DecodeRecord(v.Letter), v.Route}, true, nil
		},
	}
}

func rec(key string, seq int) string {
	return string(recordtest.JSON(recordtest.Spec{Keys: `{"pk":{"S":"` + key + `"}}`, New: `{"pk":{"S":"` + key + `"}}`, Sequence: recordtest.Sequence(seq)}))
}

// first and last are where a range begins and ends, in an on-failure record.
func first(seq int) string { return fmt.Sprintf(`"startSequenceNumber":%q`, recordtest.Sequence(seq)) }
func last(seq int) string  { return fmt.Sprintf(`"endSequenceNumber":%q`, recordtest.Sequence(seq)) }

// undecodable is a record of a key of no type.
var undecodable = fmt.Sprintf(`{"eventID":"e","eventName":"INSERT","dynamodb":{"SequenceNumber":%q,"Keys":{"pk":{"X":"?"}}}}`, recordtest.Sequence(77))

func letter(key string, seq int, route string) string {
	return fmt.Sprintf(`{"letter":%s,"route":%q}`, rec(key, seq), route)
}

// of are the sequence numbers that a route handled of a key, in their order.
func (w *world) of(route, key string) (seqs []string) {
	for _, h := range w.handled {
		if f := strings.Fields(h); f[0] == route && f[1] == key {
			seqs = append(seqs, f[2])
		}
	}
	return seqs
}

func pretty(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// Every kind of input, also one in another, in one file.
func TestKinds(t *testing.T) {
	event := func(recs ...string) string { return `{"Records":[` + strings.Join(recs, ",") + `]}` }
	batchInfo := `{"requestContext":{},"version":"1.0","DDBStreamBatchInfo":{"shardId":"shard",` + first(8) + `,` + last(9) + `,"streamArn":"` + recordtest.ARN + `"}`
	in := strings.Join([]string{
		rec("a", 1),
		event(rec("a", 2), rec("a", 3)),
		"[" + rec("a", 4) + "]",
		pretty(t, event(rec("a", 5))),
		rec("a", 6) + " " + rec("a", 7),
		batchInfo + "}",
		batchInfo + `,"payload":` + quoted(event(rec("a", 10))) + `}`,
		batchInfo + `,"payload":` + event(rec("a", 11)) + `}`,
		`{"Type":"Notification","Message":` + quoted(event(rec("a", 12))) + `}`,
		`{"Messages":[{"Body":` + quoted(rec("a", 13)) + `},{"Body":` + quoted(rec("a", 14)) + `}]}`,
		`{"requestContext":{},"payload":` + event(rec("a", 17)) + `}`,
		letter("a", 15, "two"),
		letter("a", 16, ""),
	}, "\n")
	var w world
	o := w.options()
	o.Reread = func(_ context.Context, rng reread.Range, f func([]sluice.Record) error) error {
		if rng != (reread.Range{StreamARN: recordtest.ARN, ShardID: "shard", First: recordtest.Sequence(8), Last: recordtest.Sequence(9)}) {
			t.Errorf("%+v", rng)
		}
		for _, seq := range []int{8, 9} { // a page each
			if err := f([]sluice.Record{*sluice.DecodeRecord([]byte(rec("a", seq)))}); err != nil {
				return err
			}
		}
		return nil
	}
	p, err := Run(t.Context(), w.routes(), strings.NewReader(in), o)
	if err != nil || w.bad != nil || w.parked != nil {
		t.Fatalf("%v, bad %v, parked %v", err, w.bad, w.parked)
	}
	if p.Offset != int64(len(in)) || p.Values != 14 || p.Records != 17 || p.Done != 33 {
		t.Errorf("%+v of %d bytes", p, len(in))
	}
	want := strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13 14 17 16")
	if got := w.of("one", "a"); !slices.Equal(got, want) {
		t.Errorf("route one: %v", got)
	}
	if got := w.of("two", "a"); len(got) != 17 || !slices.Contains(got, "15") {
		t.Errorf("route two: %v", got)
	}
	for _, h := range w.handled { // which a route without a version fence may go by
		letter := strings.HasPrefix(h, "one a 16 ") || strings.HasPrefix(h, "two a 15 ") || strings.HasPrefix(h, "two a 16 ")
		if strings.HasSuffix(h, " redriven") != letter || strings.HasSuffix(h, " replayed") == letter {
			t.Errorf("origin: %s", h)
		}
	}
}

// A bad record is reported with its line, and goes to the file of failures. The others
// run.
func TestBad(t *testing.T) {
	good := rec("a", 1)
	for _, tt := range []struct {
		name, in string
		bad      []string // prefix of each
		records  int
	}{
		{"cut off at the end", good + "\n" + good[:50], []string{"2: no JSON, or not all of it"}, 1},
		{"cut off in the middle", good[:50] + "\n" + good + "\n", []string{"1: no JSON, or not all of it"}, 1},
		{"indented behind one that is cut off", good[:50] + "\n  " + good + "\n", []string{"1: no JSON, or not all of it"}, 1},
		{"byte order mark", "\uFEFF" + good + "\n" + good, []string{"1: no JSON, or not all of it: a byte order mark (the bytes EF BB BF)"}, 1},
		{"no JSON", "hello\n\n" + good, []string{"1: no JSON"}, 1},
		{"a number", "7\n" + good, []string{"1: it is no object"}, 1},
		{"another object", `{"a":1}` + "\r\n" + good, []string{"1: "}, 1},
		{"another event", `{"Records":[{"eventSource":"aws:kinesis"}]}` + "\n" + good, []string{"1: not a batch of stream records"}, 1},
		{"Kinesis", `{"KinesisBatchInfo":{}}` + "\n" + good, []string{"1: it is an on-failure record of a Kinesis stream"}, 1},
		{"nobody can reread", `{"DDBStreamBatchInfo":{"shardId":"s","streamArn":"a",` + first(1) + `,` + last(2) + `}}` + "\n" + good, []string{"1: it names records of a stream"}, 1},
		{"no position", `{"DDBStreamBatchInfo":{"shardId":"s"}}`, []string{"1: its DDBStreamBatchInfo lacks"}, 0},
		{"envelopes without end", nest(`{"a":1}`, 6), []string{"1: too many envelopes"}, 0},
		{"not JSON in an envelope", `{"Type":"Notification","Message":"hello"}` + "\n" + good, []string{"1: what the envelope holds is no JSON"}, 1},
		{"not JSON in the second message", `{"Messages":[{"Body":` + quoted(rec("b", 2)) + `},{"Body":"hello"}]}` + "\n" + good, []string{"1: message 2: what the envelope holds is no JSON"}, 2},
		{"a notification without a message", `{"Type":"Notification","Message":""}` + "\n" + good, []string{"1: "}, 1},
		{"a payload that is no event", `{"requestContext":{},"payload":{"a":1}}` + "\n" + good, []string{"1: "}, 1},
		{"a payload of nothing known", `{"payload":` + quoted(rec("b", 2)) + `}` + "\n" + good, []string{"1: "}, 1},
		{"a message of no notification", `{"Message":` + quoted(rec("b", 2)) + `}` + "\n" + good, []string{"1: "}, 1},
		{"payloads without end", within(`{"requestContext":{},"payload":%s}`, 6), []string{"1: too many envelopes"}, 0},
		{"answers without end", withinText(`{"Messages":[{"Body":%s}]}`, 6), []string{"1: message 1: message 1:"}, 0},
		{"texts without end", withinText(`{"requestContext":{},"payload":%s}`, 6), []string{"1: too many envelopes"}, 0},
		{"one record on lines", pretty(t, good), nil, 1},
		{"another object on lines", good + "\n\n{\n\"a\": 1\n}\n" + rec("b", 2) + "\nx", []string{"3: ", "7: no JSON"}, 2},
		{"another object behind one that is cut off", "{\"cut\":\n  {\"a\": 1}\n" + good, []string{"1: no JSON", "2: "}, 1},
		{"a letter that cannot be read", `{"unreadable":1}` + "\n" + good, []string{"1: of another version"}, 1},
		{"no answer of a queue", `{"Messages":7}` + "\n" + good, []string{"1: it is none of the kinds"}, 1},
		{"no stream", `{"DDBStreamBatchInfo":{"shardId":"s",` + first(1) + `,` + last(2) + `}}`, []string{"1: its DDBStreamBatchInfo lacks"}, 0},
		{"no shard", `{"DDBStreamBatchInfo":{"streamArn":"a",` + first(1) + `,` + last(2) + `}}`, []string{"1: its DDBStreamBatchInfo lacks"}, 0},
		{"no first", `{"DDBStreamBatchInfo":{"streamArn":"a","shardId":"s",` + last(2) + `}}`, []string{"1: its DDBStreamBatchInfo lacks"}, 0},
		{"no last", `{"DDBStreamBatchInfo":{"streamArn":"a","shardId":"s",` + first(1) + `}}`, []string{"1: its DDBStreamBatchInfo lacks"}, 0},
		{"an event without records", `{"Records":[]}` + "\n" + good, nil, 1},
		{"empty", "", nil, 0},
		{"empty lines", "\n \n", nil, 0},
		{"zeros", good + "\n\x00\x00\x00", []string{"2: no JSON"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var w world
			p, err := Run(t.Context(), w.routes(), iotest.OneByteReader(strings.NewReader(tt.in)), w.options())
			ok := err == nil && (p.Offset == int64(len(tt.in)) || p.Values == 0) && p.Records == tt.records && len(w.bad) == len(tt.bad) && p.Bad == len(tt.bad)
			for i := range w.bad {
				ok = ok && strings.HasPrefix(w.bad[i], tt.bad[i])
			}
			if !ok {
				t.Errorf("%v, %+v, bad %q, want %q", err, p, w.bad, tt.bad)
			}
		})
	}
}

// within is an event in n envelopes, and withinText is one in whose are texts.
func within(envelope string, n int) string {
	text := `{"Records":[]}`
	for range n {
		text = fmt.Sprintf(envelope, text)
	}
	return text
}

func withinText(envelope string, n int) string {
	text := `{"Records":[]}`
	for range n {
		text = fmt.Sprintf(envelope, quoted(text))
	}
	return text
}

func nest(text string, n int) string {
	for range n {
		text = `{"Type":"Notification","Message":` + quoted(text) + `}`
	}
	return text
}

// A record that cannot be decoded is parked whole.
func TestUndecodable(t *testing.T) {
	var w world
	if p, err := Run(t.Context(), w.routes(), strings.NewReader(undecodable), w.options()); err != nil || p.Parked != 1 || len(w.parked) != 1 || !strings.Contains(w.parked[0], "77") {
		t.Errorf("%v, %+v, %v", err, p, w.parked)
	}
}

// A failing record is given up after the attempts. Later changes of its item wait
// behind it, other items do not.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world{fails: map[string]error{"one a": errors.New("down"), "two b": sluice.Permanent(errors.New("never"))}}
		in := strings.Join([]string{rec("a", 1), rec("b", 2), rec("a", 3), rec("c", 4)}, "\n")
		p, err := Run(t.Context(), w.routes(), strings.NewReader(in), w.options())
		if err != nil || p.Parked != 3 || p.Done != 5 || p.Offset != int64(len(in)) {
			t.Fatalf("%v, %+v", err, p)
		}
		if got := w.of("one", "a"); !slices.Equal(got, []string{"1", "1", "1", "1", "1"}) {
			t.Errorf("attempts: %v", got)
		}
		all := strings.Join(w.parked, "\n")
		for _, want := range []string{"one a 1: given up after 5 attempts: down", "two b 2: never", "one a 3: flow: an earlier change"} {
			if !strings.Contains(all, want) {
				t.Errorf("%q is not in %s", want, all)
			}
		}
	})
}

// So do later dead letters of an item.
func TestLettersStayInOrder(t *testing.T) {
	w := world{fails: map[string]error{"one a": sluice.Permanent(errors.New("never"))}}
	in := strings.Join([]string{letter("a", 1, "one"), letter("a", 2, "one"), letter("b", 3, "one")}, "\n")
	p, err := Run(t.Context(), w.routes(), strings.NewReader(in), w.options())
	if err != nil || p.Parked != 2 || p.Done != 1 || !slices.Equal(w.of("one", "a"), []string{"1"}) {
		t.Errorf("%v, %+v, handled %v", err, p, w.handled)
	}
}

func TestRoute(t *testing.T) {
	in := strings.Join([]string{rec("a", 1), letter("a", 2, "one"), letter("a", 3, "two"), letter("a", 4, "")}, "\n")
	var w world
	o := w.options()
	o.Route = "two"
	p, err := Run(t.Context(), w.routes(), strings.NewReader(in), o)
	if err != nil || len(w.of("one", "a")) != 0 || len(w.of("two", "a")) != 3 || p.Unrouted != 1 {
		t.Errorf("%v, %+v, handled %v", err, p, w.handled)
	}
	o.Route = ""
	if _, err := Run(t.Context(), router.New(), strings.NewReader(in), o); err == nil || !strings.Contains(err.Error(), "there is no route: nothing would be handled") {
		t.Errorf("without a route: %v", err)
	}
	o.Route = "three"
	if _, err := Run(t.Context(), w.routes(), strings.NewReader(in), o); err == nil || !strings.Contains(err.Error(), `no route "three"`) {
		t.Errorf("a route that is not there: %v", err)
	}
	// A dead letter whose route is gone is kept.
	w, o = world{}, Options{}
	o = w.options()
	if p, err := Run(t.Context(), w.routes(), strings.NewReader(letter("a", 1, "gone")), o); err != nil || p.Parked != 1 || !strings.Contains(w.parked[0], `route "gone" does not take this record`) {
		t.Errorf("%v, %+v, %v", err, p, w.parked)
	}
}

// A stopped replay continues at its offset: it skips no record, and repeats no settled
// one.
func TestStopAndGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var lines []string
		for i := range 10 {
			lines = append(lines, rec(fmt.Sprint("k", i), i+1))
		}
		in := strings.Join(lines, "\n") + "\n"
		release := make(chan struct{})
		w := world{}
		w.block = func(key string) {
			if key == "k3" {
				stop()
				<-release
			}
		}
		o := w.options()
		o.Flow.Order = flow.ByShard
		go func() { synctest.Wait(); close(release) }()
		p, err := Run(ctx, w.routes(), strings.NewReader(in), o)
		if err != nil && !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
		second := world{}
		q, err := Run(t.Context(), second.routes(), strings.NewReader(in), func() Options { o := second.options(); o.Offset = p.Offset; return o }())
		if err != nil || q.Offset != int64(len(in)) {
			t.Fatalf("%v, %+v", err, q)
		}
		for i := range 10 {
			n := len(w.of("one", fmt.Sprint("k", i))) + len(second.of("one", fmt.Sprint("k", i)))
			if n == 0 {
				t.Errorf("k%d was left out", i)
			}
		}
	})
}

// Handlers that do not return keep the offset before their record.
func TestStuckKeepsTheOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		release := make(chan struct{})
		defer close(release)
		w := world{}
		w.block = func(key string) {
			if key == "stuck" {
				stop()
				<-release
			}
		}
		first := rec("a", 1) + "\n"
		in := first + rec("stuck", 2) + "\n" + rec("b", 3)
		p, err := Run(ctx, w.routes(), strings.NewReader(in), w.options())
		if !errors.Is(err, ErrStopped) || p.Offset != int64(len(first)) {
			t.Errorf("%v, %+v, want the offset %d", err, p, len(first))
		}
		w.block = nil
		o := w.options()
		o.Offset = p.Offset
		if p, err := Run(t.Context(), w.routes(), strings.NewReader(in), o); err != nil || p.Records != 2 {
			t.Errorf("%v, %+v", err, p)
		}
	})
}

func TestOffsets(t *testing.T) {
	in := rec("a", 1) + "\n" + rec("a", 2) + "\n"
	for offset, want := range map[int64]string{5: "in the middle of line 1", int64(len(in)) + 1: "before the offset"} {
		var w world
		o := w.options()
		o.Offset = offset
		if _, err := Run(t.Context(), w.routes(), strings.NewReader(in), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	var w world
	o := w.options()
	o.Offset = int64(len(in))
	if p, err := Run(t.Context(), w.routes(), strings.NewReader(in), o); err != nil || p.Records != 0 || p.Offset != o.Offset {
		t.Errorf("at the end: %v, %+v", err, p)
	}
}

func TestErrors(t *testing.T) {
	var w world
	o := w.options()
	o.Bad = func(Bad) error { return errors.New("disk full") }
	if p, err := Run(t.Context(), w.routes(), strings.NewReader(rec("a", 1)+"\nbad\n"+rec("a", 2)), o); err == nil || !strings.Contains(err.Error(), "line 2: disk full") || p.Offset != int64(len(rec("a", 1)))+1 {
		t.Errorf("%v, %+v", err, p)
	}
	broken := io.MultiReader(strings.NewReader(rec("a", 1)+"\n"+rec("a", 2)[:20]), iotest.ErrReader(errors.New("pipe broke")))
	if p, err := Run(t.Context(), w.routes(), broken, w.options()); err == nil || !strings.Contains(err.Error(), "line 2: pipe broke") || p.Records != 1 || p.Bad != 0 {
		t.Errorf("%v, %+v", err, p)
	}
	ahead := io.MultiReader(strings.NewReader("{\"cut\":\n  half"), iotest.ErrReader(errors.New("pipe broke")))
	if p, err := Run(t.Context(), w.routes(), ahead, w.options()); err == nil || !strings.Contains(err.Error(), "line 2: pipe broke") || p.Bad != 1 || p.Values != 1 {
		t.Errorf("while it looks ahead: %v, %+v", err, p)
	}
	if _, err := Run(t.Context(), w.routes(), strings.NewReader(""), Options{}); err == nil {
		t.Error("without a place for failures")
	}
	for what, take := range map[string]func(*Options){"records": func(o *Options) { o.Flow.DeadLetter = nil }, "values": func(o *Options) { o.Bad = nil }} {
		o := w.options()
		take(&o)
		if _, err := Run(t.Context(), w.routes(), strings.NewReader(""), o); err == nil {
			t.Errorf("without a place for %s that fail", what)
		}
	}
}

// A dry run lists the routes of every record and dead letter, and runs nothing.
func TestTell(t *testing.T) {
	in := strings.Join([]string{
		rec("a", 1), letter("a", 2, "one"), letter("a", 3, "gone"), "bad",
		undecodable,
	}, "\n")
	var w world
	o := w.options()
	var mu sync.Mutex
	told := map[int]string{}
	o.Tell = func(rec *sluice.Record, routes []*sluice.Route, err error) {
		mu.Lock()
		defer mu.Unlock()
		for _, rt := range routes {
			told[recordtest.Nth(rec.Sequence)] += rt.Name + " "
		}
		if err != nil {
			told[recordtest.Nth(rec.Sequence)] += err.Error()
		}
	}
	p, err := Run(t.Context(), w.routes(), strings.NewReader(in), o)
	if err != nil || w.handled != nil || w.parked != nil || p.Bad != 1 || len(told) != 4 || told[1] != "one two " || told[2] != "one " ||
		!strings.Contains(told[3], "does not take") || !strings.Contains(told[77], "undecodable") {
		t.Errorf("%v, %+v, told %v, handled %v", err, p, told, w.handled)
	}
}

// An event of a queue, as Lambda hands it over, is messages.
func TestMessages(t *testing.T) {
	var got []string
	m := router.New()
	m.Handle("job#MESSAGE", func(_ context.Context, rec *sluice.Record) error {
		got = append(got, rec.Table+" "+rec.Origin.String())
		return nil
	})
	in := `{"Records":[{"messageId":"m","receiptHandle":"h","body":"{\"kind\":\"job\"}","attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"1700000000000"},"messageAttributes":{},"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-1:123456789012:jobs","awsRegion":"us-east-1"}]}`
	var w world
	if p, err := Run(t.Context(), m, strings.NewReader(in), w.options()); err != nil || p.Done != 1 || !slices.Equal(got, []string{"jobs replayed"}) {
		t.Errorf("%v, %+v, handled %q, bad %q", err, p, got, w.bad)
	}
}
