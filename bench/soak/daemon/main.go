//go:build unix

// Command daemon is the daemon that bench/soak runs: each change becomes a
// message, a document and numbers on a parent.
package main

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/soak/names"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sinks/sqs"
)

func main() {
	run.Main(run.App{Name: "soak", Tables: []string{names.Items}, Routes: routes})
}

func routes(ctx context.Context, s run.Setup) (sluice.Matcher, error) {
	queue, err := sqs.New(s.AWS("sqs"), names.Queue, sqs.Options{Hooks: sqs.Hooks{Committed: s.BatchHooks("sqs").Committed}})
	if err != nil {
		return nil, err
	}
	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{s.Env("SLUICE_ENDPOINT_OPENSEARCH")}})
	if err != nil {
		return nil, err
	}
	sink, err := opensearch.New(client, opensearch.Options{Hooks: opensearch.Hooks{Committed: s.BatchHooks("opensearch").Committed}})
	if err != nil {
		return nil, err
	}
	documents, err := projection.New(sink.Write, projection.Options{
		Index: names.Index, ID: "{pk}", Version: projection.ByAttribute("rev"),
	})
	if err != nil {
		return nil, err
	}
	store, err := dynamodb.New(s.AWS("dynamodb"), dynamodb.Options{
		Keys:  map[string][]string{names.Parents: {"parent"}, names.Markers: {"pk"}},
		Hooks: dynamodb.Hooks{Committed: s.BatchHooks("dynamodb").Committed, Consumed: s.Consumed},
	})
	if err != nil {
		return nil, err
	}
	numbers, err := rollup.New(rollup.Config{
		Name: "soak", Markers: names.Markers, Once: store.Once,
		Counts: []rollup.Count{
			{Table: names.Parents, Attribute: "items", Key: rollup.By("parent")},
			{Table: names.Parents, Attribute: "total", Key: rollup.By("parent"), Of: "amount"},
		},
	})
	if err != nil {
		return nil, err
	}
	if err := store.Check(ctx, names.Parents, names.Markers); err != nil {
		return nil, err
	}
	r := router.New(router.Observe(s.RouterHooks))
	const all = "item#INSERT item#MODIFY item#REMOVE"
	r.Handle(all, func(ctx context.Context, rec *sluice.Record) error {
		image := rec.New
		if !image.Exists() {
			image = rec.Old
		}
		id, _ := image.Lookup("pk")
		rev, _ := image.Lookup("rev")
		n, ok := rev.Int64()
		if id.Str() == "" || !ok {
			return sluice.Permanent(fmt.Errorf("pk or rev of %s is missing", rec.Keys.Raw()))
		}
		return queue.Send(ctx, sqs.Message{Body: names.Message(string(rec.EventName), id.Str(), n)})
	}, router.Name(names.Send), router.NeedsBoth())
	r.Handle(all, documents.Handle, router.Name(names.Project), router.NeedsBoth())
	r.Handle(all, numbers.Handle, router.Name(names.Count), router.NeedsBoth())
	return r, nil
}
