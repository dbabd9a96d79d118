package idempotency

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// table is one in memory. What its conditions mean is written here once more;
// that the expressions say the same is for the integration test.
type table struct {
	mu   sync.Mutex
	rows map[string]sluice.Item
	fail func(op dynamo.Op) (before, after error)
	log  []string
}

func newTable(rows ...string) *table {
	t := &table{rows: map[string]sluice.Item{}}
	for _, r := range rows {
		it := parse(r)
		t.rows[str(it, "id")] = it
	}
	return t
}

func (t *table) Write(ctx context.Context, op dynamo.Op) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	var before, after error
	if t.fail != nil {
		before, after = t.fail(op)
	}
	if before != nil {
		return before
	}
	if op.Table != "idem" {
		return fmt.Errorf("table %q", op.Table)
	}
	if err := t.apply(op); err != nil {
		return err
	}
	return after
}

func (t *table) apply(op dynamo.Op) error {
	id := str(op.Key, "id")
	if op.Kind == dynamo.PutOp {
		id = str(op.Item, "id")
	}
	row := t.rows[id]
	refused := &dynamo.ConditionError{Failed: []int{0}, Items: []sluice.Item{row}, Tables: []string{op.Table}}
	switch op.Kind {
	case dynamo.PutOp:
		t.log = append(t.log, "claim")
		free := !row.Exists() || num(row, "expiration") < op.Values[":seconds"].(int64) || str(row, "status") == "EXPIRED" ||
			str(row, "status") == "INPROGRESS" && has(row, "in_progress_expiration") && num(row, "in_progress_expiration") < op.Values[":millis"].(int64)
		if !free {
			return refused
		}
		t.rows[id] = op.Item
	case dynamo.DeleteOp:
		t.log = append(t.log, "release")
		if str(row, "claim") != op.Values[":claim"] {
			return refused
		}
		delete(t.rows, id)
	case dynamo.UpdateOp:
		t.log = append(t.log, "done")
		attrs := []item.Attribute{
			item.String("status", op.Values[":completed"].(string)), item.String("data", op.Values[":null"].(string)),
			item.Number("expiration", decimal(op.Values[":expiration"].(int64))),
		}
		if v, ok := op.Values[":validation"].(string); ok {
			attrs = append(attrs, item.String("validation", v))
		}
		if !row.Exists() {
			row = op.Key
		}
		t.rows[id] = row.With(attrs...).Only("id", "expiration", "in_progress_expiration", "status", "data", "validation")
	}
	return nil
}

// ops returns the writes in order, and clears them.
func (t *table) ops() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.Join(t.log, " ")
	t.log = nil
	return s
}

func str(it sluice.Item, name string) string { v, _ := it.Lookup(name); return v.Str() }
func has(it sluice.Item, name string) bool   { _, ok := it.Lookup(name); return ok }

func num(it sluice.Item, name string) int64 {
	v, _ := it.Lookup(name)
	n, ok := v.Int64()
	if !ok {
		panic(fmt.Sprintf("%s of %s", name, it.Raw()))
	}
	return n
}

func parse(s string) sluice.Item {
	it, err := item.Parse([]byte(s))
	if err != nil {
		panic(err)
	}
	return it
}

// event is a record with the eventID "e-1".
func event() *sluice.Record {
	rec := recordtest.New(recordtest.Spec{ID: "e-1", New: `{"pk":{"S":"a"},"amount":{"N":"5"}}`})
	return &rec
}

// handler counts its calls and returns a chosen error.
type handler struct {
	calls int
	do    func(ctx context.Context) error
}

func (h *handler) handle(ctx context.Context, _ *sluice.Record) error {
	h.calls++
	if h.do == nil {
		return nil
	}
	return h.do(ctx)
}

// wrap is the handler with a name of "mail".
func (t *table) wrap(h *handler, edit ...func(*Options)) sluice.Handler {
	o := Options{Table: "idem", Write: t.Write}
	for _, e := range edit {
		e(&o)
	}
	return Once("mail", o)(h.handle)
}

// begin is when synctest's clock starts: 2000-01-01T00:00:00Z.
var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
