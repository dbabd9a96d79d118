package streamtest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// An application reads a stream that throttles, splits, and has its iterators
// expire. In a test, give NewService the *testing.T and leave Close out; in a
// bubble of testing/synctest nothing waits for real.
func ExampleNewService() {
	s := streamtest.NewService(nil)
	defer s.Close()
	orders := s.CreateTable("orders", streamtest.TableOptions{})

	// The application: its routes, and the daemon that reads the stream.
	shipped := make(chan string)
	r := router.New()
	r.Handle("order#MODIFY", func(_ context.Context, rec *sluice.Record) error {
		id, _ := rec.Keys.Lookup("pk")
		status, _ := rec.New.Lookup("status")
		shipped <- id.Str() + " is " + status.Str()
		return nil
	}, router.Changed("status"))
	p, err := poller.New(s.Config(), r, poller.Options{
		Streams: []poller.Stream{{Table: "orders"}}, Start: poller.TrimHorizon, Store: state.NewMemory(),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()

	orders.Put(map[string]any{"pk": "order-1", "entityType": "order", "status": "new"})
	s.Fail(streamtest.Fault{Op: "GetRecords", Error: "LimitExceededException", Times: 3})
	orders.Put(map[string]any{"pk": "order-1", "entityType": "order", "status": "packed"})
	fmt.Println(<-shipped)

	orders.Split(orders.Shards()[0].ID)
	orders.Put(map[string]any{"pk": "order-1", "entityType": "order", "status": "sent"})
	fmt.Println(<-shipped)

	s.Advance(16 * time.Minute) // iterators live for 15
	orders.Put(map[string]any{"pk": "order-1", "entityType": "order", "status": "delivered"})
	fmt.Println(<-shipped)

	stop()
	fmt.Println("stopped:", <-ended)
	// Output:
	// order-1 is packed
	// order-1 is sent
	// order-1 is delivered
	// stopped: <nil>
}
