//go:build unix

// Command daemon is the daemon that bench/figures measures: a whole program with
// default settings, whose handlers do only what a figure needs.
package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
)

func main() { run.Main(run.App{Name: "figures", Routes: routes}) }

func routes(_ context.Context, s run.Setup) (sluice.Matcher, error) {
	h, err := handler(s.Env)
	if err != nil {
		return nil, err
	}
	r := router.New()
	r.Handle("search#INSERT search#MODIFY", h, router.Name("search"))
	r.Handle("searchAttempt#MODIFY", h, router.Name("attempted"))
	r.Handle("contact#MODIFY contact#REMOVE", h, router.Name("contact"))
	r.Handle("contactMethod#MODIFY incident#MODIFY", h, router.Name("other"))
	return r, nil
}

// handler counts, or reports each record.
func handler(env func(string) string) (sluice.Handler, error) {
	if env(tell.EnvEach) != "" {
		return each, nil
	}
	records, err := strconv.ParseInt(env(tell.EnvRecords), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tell.EnvRecords, err)
	}
	c := &tell.Counter{Records: records}
	return func(context.Context, *sluice.Record) error {
		c.Count()
		return nil
	}, nil
}

func each(_ context.Context, rec *sluice.Record) error {
	now := time.Now().UnixNano()
	v, _ := rec.New.Lookup(tell.Sent)
	sent, ok := v.Int64()
	if !ok {
		return sluice.Permanent(fmt.Errorf("attribute %s is not a number", tell.Sent))
	}
	tell.Say(tell.Line{At: now, Sent: sent})
	return nil
}
