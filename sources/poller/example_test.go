package poller_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state/boltstate"
)

// A daemon that reads two tables until it is told to stop.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	store, err := boltstate.Open("/var/lib/orders/state", boltstate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	r := router.New()
	r.Handle("order#INSERT", func(_ context.Context, rec *sluice.Record) error {
		log.Println("new order, sequence number", rec.Sequence)
		return nil
	})
	p, err := poller.New(cfg, r, poller.Options{
		Application: "orders",
		Streams:     []poller.Stream{{Table: "orders"}, {Table: "customers"}},
		Start:       poller.Latest,
		Store:       store,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		log.Print(err)
	}
}
