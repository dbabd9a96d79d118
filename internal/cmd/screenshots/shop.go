package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// shop is a made-up daemon: its search has been down for some minutes.
type shop struct {
	page.Daemon // nil: the pictures ask for nothing else
	status      page.Status
	tables      []page.Table
	held        []holders.Item
	box         *letters.Box
	letter      string // the id of a dead letter
}

func (s *shop) Status() page.Status                               { return s.status }
func (s *shop) Tables() []page.Table                              { return s.tables }
func (s *shop) Held(bool) page.HeldItems                          { return page.HeldItems{Held: s.held} }
func (s *shop) Gaps() []page.Gap                                  { return nil }
func (s *shop) Workers(context.Context) ([]holders.Worker, error) { return nil, nil }

func (s *shop) Show(ctx context.Context, id string) (deadletter.Entry, error) {
	return s.box.Get(ctx, id)
}

func (s *shop) Explain(context.Context, *sluice.Record) []page.Explained {
	return []page.Explained{
		{Route: "receipts", Kind: "send", Takes: true, Effects: []string{"sends {\"order\":\"o-4711\"} to receipts"}},
		{Route: "search", Kind: "project", Why: "it takes product#*"},
	}
}

func newShop(ctx context.Context) (*shop, error) {
	now := time.Now()
	s := &shop{box: letters.NewBox(state.NewMemory(), "shop")}
	// hour is an hour of about perPoint calls, of which the last ones fail.
	hour := func(perPoint, failing int, p50, p99 float32) []page.Point {
		all := make([]page.Point, page.PointCount)
		for i := range all {
			n := float64(perPoint) * (1 + .3*math.Sin(float64(i+perPoint)/float64(9+perPoint/100)) + .1*math.Sin(float64(i*perPoint)))
			all[i] = page.Point{Done: uint32(n), P50: p50, P99: p99}
			if i >= page.PointCount-failing {
				all[i] = page.Point{Failed: uint32(n / 30), P50: 5, P99: 5}
			}
		}
		return all
	}
	route := func(name string, hour []page.Point) page.Route {
		return page.Route{Route: name, State: "works", Hour: hour, Last: hour[len(hour)-1]}
	}
	receipts, search, points := route("receipts", hour(1400, 0, .006, .031)), route("search", hour(2600, 9, .018, .140)), route("points", hour(700, 0, .009, .044))
	search.State, search.Since, search.Failing, search.Waiting = "outage", now.Add(-4*time.Minute-12*time.Second), 64, 21843
	search.Error = "write products: 503 Service Unavailable: no shard copy is available"
	points.State, points.Since, points.Limit = "overloaded", now.Add(-40*time.Second), 7
	s.status = page.Status{
		Application: "shop", Version: "v0.9.0", Config: "1a2b3c4d", Worker: "shop-0/1/A7", Started: now.Add(-79 * time.Hour),
		Reasons: []string{`route "search" fails for every record since ` + search.Since.UTC().Format("15:04:05Z") + ": " + search.Error},
		Routes:  []page.Route{receipts, search, points}, Held: 64,
		DeadLetters: []deadletter.Count{{Route: "receipts", Table: "orders", Kind: "record", N: 3}}, CountedAt: now,
	}
	for i, table := range []string{"orders", "products"} {
		t := page.Table{Table: table, HoursToLoss: 24}
		for n := range 2 + 2*i {
			shard := page.Shard{Table: table, ID: fmt.Sprintf("shardId-00000001764%03d-%08x", 17*n, 0x5eed<<n), State: page.Open, Reading: true, Owner: s.status.Worker, HoursToLoss: 24, LastPoll: now}
			if table == "products" {
				shard.LagSeconds, shard.Unsettled, shard.HoursToLoss = 252-float64(n), uint64(5600-80*n), 23.9
			}
			t.Shards = append(t.Shards, shard)
			t.Open, t.Reading, t.Unsettled = t.Open+1, t.Reading+1, t.Unsettled+shard.Unsettled
			t.LagSeconds, t.HoursToLoss = max(t.LagSeconds, shard.LagSeconds), min(t.HoursToLoss, shard.HoursToLoss)
		}
		s.tables = append(s.tables, t)
	}
	for n := range 3 {
		s.held = append(s.held, holders.Item{Source: "stream", Table: "products", Key: fmt.Sprintf("%012x", 0xa1b2c3d4e5f6>>n), Route: "search", Attempts: 24 - n, AgeSeconds: 252 - float64(3*n), Bytes: 2048, Error: search.Error})
	}
	rec := streamtest.Modify("orders",
		`{"pk":{"S":"o-4711"},"entityType":{"S":"order"},"status":{"S":"packed"},"total":{"N":"129.90"},"parcels":{"L":[{"S":"p-1"}]}}`,
		`{"pk":{"S":"o-4711"},"entityType":{"S":"order"},"status":{"S":"sent"},"total":{"N":"129.90"},"parcels":{"L":[{"S":"p-1"},{"S":"p-2"}]},"carrier":{"S":"post"}}`)
	failed := errors.New("receipt for o-4711: the customer has no address")
	at := now.Add(-26 * time.Minute)
	err := s.box.Park(ctx, &rec, sluice.Failure{Route: "receipts", Attempts: 1, First: failed, Last: failed, FirstAt: at, LastAt: at})
	s.letter = s.box.ID(&rec, "receipts")
	return s, err
}
