package dynamostate_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state/dynamostate"
)

// A program without a disk. A second one waits until the first ends or falls silent.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := dynamostate.Create(ctx, cfg, "sluice-state", dynamostate.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	store, err := dynamostate.New(cfg, "sluice-state")
	if err != nil {
		log.Fatal(err)
	}
	p, err := poller.New(cfg, router.New(), poller.Options{
		Application: "orders",
		Streams:     []poller.Stream{{Table: "orders"}},
		Start:       poller.Latest,
		Store:       store,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		log.Print(err)
	}
	if err := store.Close(); err != nil { // a waiting process takes over at once
		log.Print(err)
	}
}
