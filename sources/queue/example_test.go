package queue_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/queue"
	"github.com/sluicehq/sluice/state/boltstate"
)

// A worker consumes two queues until a signal.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	store, err := boltstate.Open("/var/lib/worker/state", boltstate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	r := router.New()
	r.Handle("resize#MESSAGE", func(_ context.Context, rec *sluice.Record) error {
		picture, _ := rec.New.Lookup("picture")
		log.Println("resizing", picture.Str())
		return nil
	})
	c, err := queue.New(cfg, r, queue.Options{
		Queues:     []string{"jobs", "urgent.fifo"},
		DeadLetter: deadletter.NewBox(store, "worker"),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Run(ctx); err != nil {
		log.Print(err)
	}
}
