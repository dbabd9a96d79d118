package escalation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

// users are people who do anything to a page at any time, also between two calls
// of a handler.
type users struct {
	*rota
	t     *testing.T
	rnd   *rand.Rand
	left  int // what they still do
	round int
	did   []string

	active, ended string // when it was last made active, and expired
}

// does does one thing.
func (u *users) does() {
	u.left--
	now := u.Now()
	said := func(what string) { u.did = append(u.did, now.Format("15:04:05 ")+what) }
	wasActive := u.state() == "ringing"
	switch n := u.rnd.IntN(12); {
	case n < 3:
		said("answered")
		u.set(u.t, "state", "answered")
	case n < 6:
		said("ringing")
		u.set(u.t, "state", "ringing")
	case n == 6:
		said("put whole, ringing")
		u.outside = true
		u.put(u.t, "pages", ringing)
		u.outside = false
	case n == 7:
		until := now.Add(time.Duration(u.rnd.IntN(3600)) * time.Second).Truncate(time.Second)
		said("snoozed until " + until.Format("15:04:05"))
		u.set(u.t, "snoozedUntil", until.Format(time.RFC3339))
	case n == 8:
		said("awake")
		u.set(u.t, "snoozedUntil", "")
	case n == 9:
		order := u.rnd.IntN(5)
		said(fmt.Sprint("resume at ", order))
		u.set(u.t, "resumeAt", order)
	case n == 10:
		who := []string{"ann", "bob", "cat"}[u.rnd.IntN(3)]
		said(who + " is away, or back")
		step := inTeam(who, 1+u.rnd.IntN(4), u.rnd.IntN(900))
		if u.rnd.IntN(2) == 0 {
			step = strings.Replace(step, "true", "false", 1)
		}
		u.outside = true
		u.put(u.t, "people", step)
		u.outside = false
	default:
		u.round += 10
		said(fmt.Sprint("round ", u.round))
		u.set(u.t, "round", u.round)
	}
	if !wasActive && u.state() == "ringing" {
		u.active = now.Format("15:04:05")
	}
}

// perhaps has somebody do something in the midst of a handler.
func (u *users) perhaps() {
	if !u.outside && u.left > 0 && u.rnd.IntN(12) == 0 {
		u.does()
	}
}

// For any actions on a page: nobody is called while the page does not ring, or twice
// for a step. A page that rings again has calls again. Every page ends.
func TestUsersSeeds(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) { usersSeed(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func usersSeed(t *testing.T, seed uint64) {
	u := &users{rota: newRounds(t), t: t, rnd: rand.New(rand.NewPCG(seed, 7))}
	u.left = u.rnd.IntN(8)
	u.Rand = u.rnd
	u.edit = func(c *ConsumerConfig) {
		named(c)
		c.Config.Repeat = int64(u.rnd.IntN(2))
		get, query, attempt, write := c.Config.Get, c.Config.Query, c.Config.GetAttempt, c.Config.Write
		send, watch := c.Config.Send, c.Config.Watch.Send
		c.Config.Get = func(ctx context.Context, id string) (sluice.Item, error) {
			u.perhaps()
			return get(ctx, id)
		}
		c.Config.Query = func(ctx context.Context, team string) ([]sluice.Item, error) {
			u.perhaps()
			return query(ctx, team)
		}
		c.Config.GetAttempt = func(ctx context.Context, id string, round, number int64) (sluice.Item, error) {
			u.perhaps()
			return attempt(ctx, id, round, number)
		}
		c.Config.Write = func(ctx context.Context, op dynamo.Op) error {
			u.perhaps()
			return write(ctx, op)
		}
		c.Config.Send = func(ctx context.Context, m sluice.Message) error {
			u.perhaps()
			return send(ctx, m)
		}
		c.Config.Watch.Send = func(ctx context.Context, m sluice.Message) error {
			u.perhaps()
			return watch(ctx, m)
		}
		fail := c.Config.Fail
		c.Config.Fail = func(ctx context.Context, e Escalation, reason string) error {
			u.perhaps()
			was := u.state()
			err := fail(ctx, e, reason)
			if is := u.state(); is != was {
				u.ended = u.Now().Format("15:04:05")
				u.did = append(u.did, u.ended+" "+is)
			}
			return err
		}
	}
	u.contact = func(_ context.Context, try Try) error {
		if u.state() != "ringing" {
			t.Errorf("called %s of a page that is %s", try.DedupeKey, u.state())
		}
		return nil
	}
	h := u.handleWith(t, u.config())
	at := time.Duration(0)
	for u.left > 0 {
		at += time.Duration(u.rnd.IntN(1200)) * time.Second
		if err := u.Run(t.Context(), h, start.Add(at)); err != nil {
			t.Fatal(err)
		}
		if u.left > 0 {
			u.does()
		}
	}
	if err := u.Run(t.Context(), h, start.Add(at+12*time.Hour)); err != nil || len(u.Parked) > 0 {
		t.Fatal(err, u.Parked)
	}
	tell := func(what string) {
		t.Errorf("%s\ndid\n%s\ncalls\n%s\npage %s\nalarms %v", what, strings.Join(u.did, "\n"), strings.Join(u.calls, "\n"), u.Items("pages")[0].Raw(), u.alarms)
	}
	if u.state() == "ringing" {
		tell("it rings for ever")
	}
	var keys []string
	last := "00:00:00"
	for _, call := range u.calls {
		when, rest, _ := strings.Cut(call, " ")
		key := strings.Fields(rest)[0]
		if slices.Contains(keys, key) {
			tell("called twice: " + key)
		}
		keys, last = append(keys, key), when
	}
	// An expiry that comes in the very moment ends the page: the record of the change
	// is not handled yet.
	if u.active > last && u.ended > u.active {
		tell("active again, and nobody was called")
	}
}
