package escalation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/item"
)

// rota is pages, people and rings in tables. It is made in a bubble.
type rota struct {
	*tabletest.World
	mu      sync.Mutex
	calls   []string // key of each call and what it came to
	contact func(ctx context.Context, t Try) error
	sending func(sluice.Message)
	edit    func(*ConsumerConfig)
	key     string // sort key of rings
	events  []event
	alarms  []Alarm
	outside bool // a write is somebody else's

	hold func(*sluice.Record) bool // a record is not handled, but held
	held func(*sluice.Record)
}

// event is an action of somebody else, with its time.
type event struct {
	at time.Duration
	do func(*testing.T)
}

func newRota(t *testing.T) *rota { return newRotaBy(t, "n") }

// newRounds is a rota whose attempts have rounds in their keys.
func newRounds(t *testing.T) *rota { return newRotaBy(t, "key") }

func newRotaBy(t *testing.T, key string) *rota {
	w := &rota{World: tabletest.NewWorld(start), key: key}
	w.Create("pages", "id", "")
	w.Create("people", "team", "person")
	w.Create("rings", "page", key)
	w.put(t, "pages", ringing)
	for _, p := range []string{`{"team":{"S":"T1"},"person":{"S":"team"}}`, inTeam("ann", 1, 0), inTeam("bob", 2, 60), inTeam("cat", 3, 1200)} {
		w.put(t, "people", p)
	}
	return w
}

func inTeam(id string, rank, patience int) string {
	return strings.Replace(person(id, rank, patience, true), "{", `{"team":{"S":"T1"},`, 1)
}

func (w *rota) put(t *testing.T, table, it string) {
	t.Helper()
	if err := w.Put(t.Context(), table, parse(it)); err != nil {
		t.Fatal(err)
	}
}

// sent are the messages of the chain, without those of its watchdog.
func (w *rota) sent() (chain []tabletest.Sent) {
	for _, s := range w.Sent {
		if s.Queue == "rings" {
			chain = append(chain, s)
		}
	}
	return chain
}

// set sets an attribute of the page, as the application does; "" removes it.
func (w *rota) set(t *testing.T, name string, value any) {
	t.Helper()
	w.outside = true
	defer func() { w.outside = false }()
	op := dynamo.Update("pages", item.Of(item.String("id", "P1")), "SET #n = :v").Name("#n", name).Value(":v", value)
	if value == "" {
		op = dynamo.Update("pages", item.Of(item.String("id", "P1")), "REMOVE #n").Name("#n", name)
	}
	if err := w.Write(t.Context(), op); err != nil {
		t.Fatal(err)
	}
}

func (w *rota) config() ConsumerConfig {
	c := (&world{}).config()
	c.Get = func(ctx context.Context, id string) (sluice.Item, error) {
		return w.World.Get(ctx, "pages", item.Of(item.String("id", id)))
	}
	c.Query = func(ctx context.Context, team string) (all []sluice.Item, err error) {
		for it, err := range dynamo.All(ctx, w.World.Query, dynamo.Query{Table: "people", Partition: item.String("team", team)}) {
			if err != nil {
				return nil, err
			}
			all = append(all, it)
		}
		return all, nil
	}
	c.Fail = func(ctx context.Context, e Escalation, reason string) error {
		op := dynamo.Update("pages", item.Of(item.String("id", e.ID)), "SET #s = :s").Name("#s", "state").Value(":s", reason)
		err := w.Write(ctx, c.Escalation.StillIn(e.Item, op))
		if dynamo.IsCondition(err) {
			return nil
		}
		return err
	}
	c.StepBody = func(t Try) []byte {
		var b message.Body
		b.Str("kind", "ring").Str("page", t.Escalation.ID).Str("person", t.Step.ID).Int("rank", t.Step.Order).Int("n", t.Number).Time("from", t.NotBefore)
		if t.Round+t.Repeat > 0 {
			b.Int("round", t.Round).Int("repeat", t.Repeat)
		}
		return b.Bytes()
	}
	c.ExpiryBody = func(x Expiry) []byte {
		var b message.Body
		b.Str("kind", "giveUp").Str("page", x.Escalation.ID).Time("from", x.NotBefore)
		if x.Round > 0 {
			b.Int("round", x.Round)
		}
		return b.Bytes()
	}
	c.GetAttempt = func(ctx context.Context, id string, round, number int64) (sluice.Item, error) {
		sort := item.Number("n", fmt.Sprint(number))
		if w.key != "n" {
			sort = item.String(w.key, tryKey(id, round, number))
		}
		return w.World.Get(ctx, "rings", item.Of(item.String("page", id), sort))
	}
	c.Write, c.Send, c.Now = w.Write, w.Queue("rings"), w.Now
	c.Watch = Watchdog{Kind: "watch", Send: w.Queue("watch"), Alarm: func(_ context.Context, a Alarm) error {
		w.alarms = append(w.alarms, a)
		return nil
	}}
	config := ConsumerConfig{
		Config:       c,
		Message:      MessageMembers{Escalation: "page", StepID: "person", Order: "rank", Number: "n", NotBefore: "from"},
		AttemptTable: "rings",
		AttemptKey:   []string{"page", w.key},
		NewAttempt: func(t Try) sluice.Item {
			tried := item.Of(item.String("person", t.Step.ID), item.Number("rank", fmt.Sprint(t.Step.Order)))
			it := item.Of(item.String("page", t.Escalation.ID), item.Number("n", fmt.Sprint(t.Number)), item.Map("tried", tried))
			if w.key != "n" {
				it = it.With(item.String(w.key, t.DedupeKey))
			}
			return it
		},
		Contact: func(ctx context.Context, t Try) error {
			var err error
			if w.contact != nil {
				err = w.contact(ctx, t)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls = append(w.calls, fmt.Sprintf("%s %s %s", w.Now().Format("15:04:05"), t.DedupeKey, t.Step.ID))
			return err
		},
	}
	if w.edit != nil {
		w.edit(&config)
	}
	return config
}

func (w *rota) consumer(t *testing.T) *Consumer {
	t.Helper()
	c, err := NewConsumer(w.config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// handleWith is the router of the rota.
func (w *rota) handleWith(t *testing.T, config ConsumerConfig) sluice.Handler {
	t.Helper()
	e, err := New(config.Config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConsumer(config)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, rec *sluice.Record) error {
		_, wasMade := rec.Old.Lookup("at")
		_, isMade := rec.New.Lookup("at")
		switch {
		case rec.Table == "pages" && (rec.EventName == sluice.Insert || rec.EventName == sluice.Snapshot):
			return e.Start(ctx, rec)
		case rec.Table == "pages" && rec.EventName == sluice.Modify:
			return e.Resume(ctx, rec)
		case rec.Table == "rings" && rec.EventName == sluice.Modify && isMade && !wasMade:
			return e.Next(ctx, rec)
		case rec.EventName == sluice.Delivery && rec.Table == "watch":
			return e.Watch(ctx, rec)
		case rec.EventName == sluice.Delivery && strings.Contains(string(rec.New.Raw()), "giveUp"):
			return c.Expire(ctx, rec)
		case rec.EventName == sluice.Delivery:
			return c.Try(ctx, rec)
		}
		return nil
	}
}

func (w *rota) rings() string {
	var all []string
	for _, it := range w.Items("rings") {
		all = append(all, string(it.Raw()))
	}
	return strings.Join(all, "\n")
}

func (w *rota) state() string {
	v, _ := w.Items("pages")[0].Lookup("state")
	return v.Str()
}
