package cascade

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

const childEnv = "SLUICE_CASCADE_TEST_CHILD"

// workerProcess is the main function of this test binary when a test starts it as a
// child process.
var workerProcess func()

func TestMain(m *testing.M) {
	if workerProcess != nil && os.Getenv(childEnv) != "" {
		workerProcess()
		return
	}
	goleak.VerifyTestMain(m)
}

var errDead = errors.New("the process is dead")

// world is tables with indexes, and a queue. Each call can be the one at which
// the process dies.
type world struct {
	mu     sync.Mutex
	tables map[string]*table
	queue  []queued
	took   time.Duration // of a call, virtual

	calls  int
	killAt int  // the call at which the process dies; 0 is none
	before bool // it dies before the call has its effect
	dead   bool

	inFlight int           // requests that delete, at a time; 0 is 16
	slots    chan struct{} // as many
	waits    time.Duration // for a budget, before each of them

	gets, queries, deletes int // rows read, pages read, rows deleted
	onDelete               func(table string, keys []sluice.Item) []error
	onQuery                func(dynamo.Query)
}

type table struct {
	sorted
	indexes map[string]*index
}

// sorted is rows in the order of the attributes of key, each under the key that
// it has in its table.
type sorted struct {
	key  []string
	rows map[string]sluice.Item

	order []row // what was ever put since it was made
	stale bool
}

type row struct {
	key string
	it  sluice.Item
}

// partition returns the rows of a partition in the order of their keys, those after a
// key that is set. Tests have thousands of rows, and delete them one by one: partition
// sorts again only after a put.
func (t *sorted) partition(of, after sluice.Item, limit int, is func(sluice.Item) bool) (found []sluice.Item) {
	if t.stale || t.order == nil {
		t.order, t.stale = t.order[:0], false
		for key, it := range t.rows {
			t.order = append(t.order, row{key, it})
		}
		slices.SortFunc(t.order, func(a, b row) int { return compareBy(a.it, b.it, t.key) })
	}
	i, _ := slices.BinarySearchFunc(t.order, of, func(r row, of sluice.Item) int { return compareBy(r.it, of, t.key[:1]) })
	if after.Exists() {
		same := false
		if i, same = slices.BinarySearchFunc(t.order, after, func(r row, after sluice.Item) int { return compareBy(r.it, after, t.key) }); same {
			i++
		}
	}
	for ; i < len(t.order) && has(t.order[i].it, of) && (limit == 0 || len(found) < limit); i++ {
		if it, ok := t.rows[t.order[i].key]; ok && is(it) {
			found = append(found, it)
		}
	}
	return found
}

// index shows an earlier state of its table.
type index struct {
	sorted
	lag  time.Duration
	late []change
}

type change struct {
	at  time.Time
	key string
	it  sluice.Item // absent: deleted
}

type queued struct {
	m  sluice.Message
	at time.Time
}

func parse(s string) sluice.Item {
	it, err := item.Parse([]byte(s))
	if err != nil {
		panic(err)
	}
	return it
}

func newWorld() *world { return &world{tables: make(map[string]*table)} }

func (w *world) table(name string, key ...string) *table {
	t := &table{sorted: newSorted(key), indexes: make(map[string]*index)}
	w.tables[name] = t
	return t
}

func (t *table) index(name string, lag time.Duration, key ...string) {
	for _, more := range t.key {
		if !slices.Contains(key, more) {
			key = append(slices.Clip(key), more)
		}
	}
	t.indexes[name] = &index{sorted: newSorted(key), lag: lag}
}

func newSorted(key []string) sorted { return sorted{key: key, rows: make(map[string]sluice.Item)} }

func (t *sorted) change(key string, it sluice.Item) {
	if it.Exists() {
		t.rows[key], t.stale = it, true
	} else {
		delete(t.rows, key)
	}
}

func (t *table) put(rows ...string) {
	for _, s := range rows {
		it := parse(s)
		t.set(string(it.Only(t.key...).Raw()), it)
	}
}

func (t *table) set(key string, it sluice.Item) {
	t.change(key, it)
	for _, x := range t.indexes {
		x.late = append(x.late, change{time.Now().Add(x.lag), key, it})
	}
}

// keys returns the rows that are there, in an order of their own.
func (t *table) keys() []string { return slices.Sorted(maps.Keys(t.rows)) }

// begin is the start of a call, end its end.
func (w *world) begin(ctx context.Context) (n int, err error) {
	if w.took > 0 {
		time.Sleep(w.took)
	}
	w.mu.Lock()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	w.calls++
	if w.calls == w.killAt && w.before {
		w.dead = true
	}
	if w.dead {
		return 0, errDead
	}
	return w.calls, nil
}

func (w *world) end(n int) error {
	if n == w.killAt && n > 0 && !w.before {
		w.dead = true
		return errDead
	}
	return nil
}

func (w *world) get(ctx context.Context, name string, key sluice.Item) (sluice.Item, error) {
	n, err := w.begin(ctx)
	defer w.mu.Unlock()
	if err != nil {
		return sluice.Item{}, err
	}
	w.gets++
	t := w.tables[name]
	return t.rows[string(key.Only(t.key...).Raw())], w.end(n)
}

func (w *world) query(ctx context.Context, q dynamo.Query) (dynamo.Page, error) {
	if w.onQuery != nil {
		w.onQuery(q)
	}
	n, err := w.begin(ctx)
	defer w.mu.Unlock()
	if err != nil {
		return dynamo.Page{}, err
	}
	w.queries++
	t := w.tables[q.Table]
	from := &t.sorted
	if q.Index != "" {
		x := t.indexes[q.Index]
		for len(x.late) > 0 && !x.late[0].at.After(time.Now()) {
			x.change(x.late[0].key, x.late[0].it)
			x.late = x.late[1:]
		}
		from = &x.sorted
	}
	found := from.partition(item.Of(q.Partition), q.After, q.Limit, func(it sluice.Item) bool { return q.Sort.Op == "" || begins(it, q.Sort) })
	var page dynamo.Page
	if q.Limit > 0 && len(found) >= q.Limit { // also when nothing comes after it
		found = found[:q.Limit]
		page.Next = found[len(found)-1].Only(from.key...)
	}
	for _, it := range found {
		if len(q.Attributes) > 0 {
			it = it.Only(q.Attributes...)
		}
		page.Items = append(page.Items, it)
	}
	return page, w.end(n)
}

func has(it, attribute sluice.Item) bool {
	for name, want := range attribute.All() {
		v, ok := it.Lookup(name)
		return ok && v.Equal(want)
	}
	return false
}

func begins(it sluice.Item, s dynamo.Sort) bool {
	if s.Op != "begins_with" {
		panic(s.Op)
	}
	for name, want := range item.Of(s.Key).All() {
		v, ok := it.Lookup(name)
		return ok && v.Kind() == item.S && bytes.HasPrefix(v.Text(), want.Text())
	}
	return false
}

func compareBy(a, b sluice.Item, names []string) int {
	for _, name := range names {
		v, _ := a.Lookup(name)
		u, _ := b.Lookup(name)
		n := cmp.Compare(v.Kind(), u.Kind()) // a real key has one type
		if n == 0 && v.Kind() == item.N {
			f, _ := v.Float64()
			g, _ := u.Float64()
			n = cmp.Compare(f, g)
		} else if n == 0 {
			n = cmp.Or(bytes.Compare(v.Text(), u.Text()), bytes.Compare(v.Bytes(), u.Bytes()))
		}
		if n != 0 {
			return n
		}
	}
	return 0
}

// requestRows is how many rows a request without a condition deletes.
const requestRows = 25

// delete asks the guard after the wait, as a Store does.
func (w *world) delete(ctx context.Context, d dynamo.GuardedDelete) {
	w.deleteBy(ctx, d, func(ctx context.Context, keys []sluice.Item) []error { return w.deleteAll(ctx, d, keys) })
}

func (w *world) deleteBy(ctx context.Context, d dynamo.GuardedDelete, request func(context.Context, []sluice.Item) []error) {
	size := requestRows
	if d.Condition != "" {
		size = 1
	}
	w.mu.Lock()
	if w.slots == nil {
		w.slots = make(chan struct{}, cmp.Or(w.inFlight, 16))
	}
	w.mu.Unlock()
	var refused atomic.Pointer[error]
	var requests sync.WaitGroup
	for keys := range slices.Chunk(d.Keys, size) {
		w.slots <- struct{}{}
		requests.Go(func() {
			defer func() { <-w.slots }()
			if w.waits > 0 && refused.Load() == nil {
				time.Sleep(w.waits)
			}
			if refused.Load() == nil {
				if err := d.Guard(ctx); err != nil {
					refused.Store(&err)
				}
			}
			if err := refused.Load(); err != nil {
				d.Done(keys, slices.Repeat([]error{*err}, len(keys)))
				return
			}
			d.Done(keys, request(ctx, keys))
		})
	}
	requests.Wait()
}

func (w *world) deleteAll(ctx context.Context, d dynamo.GuardedDelete, keys []sluice.Item) []error {
	n, err := w.begin(ctx)
	defer w.mu.Unlock()
	all := func(err error) []error { return slices.Repeat([]error{err}, len(keys)) }
	if err != nil {
		return all(err)
	}
	var errs []error
	if w.onDelete != nil {
		errs = w.onDelete(d.Table, keys)
	}
	t := w.tables[d.Table]
	for i, key := range keys {
		if key.Len() != len(t.key) {
			panic("no key: " + string(key.Raw()))
		}
		id := string(key.Only(t.key...).Raw())
		if !holds(d, t.rows[id]) {
			errs = []error{&dynamo.ConditionError{Failed: []int{0}, Tables: []string{d.Table}, Items: []sluice.Item{t.rows[id]}}}
		}
		if errs == nil || errs[i] == nil {
			w.deletes++
			t.set(id, sluice.Item{})
		}
	}
	if err := w.end(n); err != nil {
		return all(err)
	}
	return errs
}

func (w *world) send(ctx context.Context, m sluice.Message) error {
	n, err := w.begin(ctx)
	defer w.mu.Unlock()
	if err != nil {
		return err
	}
	w.queue = append(w.queue, queued{m, time.Now().Add(m.Delay)})
	return w.end(n)
}

// config is the tables of maps and points.
func (w *world) config() Config {
	return Config{
		Table: "maps", Key: []string{"user_id", "map_id"},
		Children: []Child{{
			Table: "points", Key: []string{"map_id", "point_id"},
			Partition: Attr{Name: "map_id", From: "map_id"},
		}},
		Get: w.get, Query: w.query, Delete: w.delete, Send: w.send,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

const queueARN = "arn:aws:sqs:eu-west-1:123456789012:cascades"

func record(m sluice.Message) *sluice.Record {
	m.ID, m.Received = "m1", 1
	return m.Record(queueARN)
}

// deliver has h handle the oldest message that is due, or that will be first;
// false when there is none. A message that fails stays.
func (w *world) deliver(ctx context.Context, h sluice.Handler) (bool, error) {
	w.mu.Lock()
	if len(w.queue) == 0 {
		w.mu.Unlock()
		return false, nil
	}
	slices.SortStableFunc(w.queue, func(a, b queued) int { return a.at.Compare(b.at) })
	next := w.queue[0]
	w.mu.Unlock()
	time.Sleep(time.Until(next.at))
	err := h(ctx, record(next.m))
	if err == nil || sluice.IsSkip(err) {
		w.mu.Lock()
		i := slices.IndexFunc(w.queue, func(q queued) bool { return q.m.Body == next.m.Body && q.at.Equal(next.at) })
		w.queue = slices.Delete(w.queue, i, i+1)
		w.mu.Unlock()
	}
	return true, err
}

// drain delivers until the queue is empty.
func (w *world) drain(t *testing.T, h sluice.Handler) {
	t.Helper()
	for n := 0; ; n++ {
		if n > 10_000 {
			t.Fatal("the queue does not become empty")
		}
		some, err := w.deliver(t.Context(), h)
		if err != nil && !sluice.IsSkip(err) {
			t.Fatal(err)
		}
		if !some {
			return
		}
	}
}

func must(t *testing.T, c Config) *Cascade {
	t.Helper()
	x, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
