package queue

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// Nothing is received before After is closed, but queues are opened.
func TestAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		begin := make(chan struct{})
		w.start(Options{After: begin}, func(context.Context, *sluice.Record) error { return nil })
		pass(time.Minute)
		if n := w.stub.count("ReceiveMessage"); n != 0 {
			t.Errorf("%d receives before", n)
		}
		if n := w.stub.count("GetQueueUrl"); n != 1 {
			t.Errorf("the queue was opened %d times", n)
		}
		if len(w.c.NotReady()) == 0 {
			t.Error("ready before it receives")
		}
		select {
		case <-w.c.Opened():
			t.Error("opened before it may receive")
		default:
		}
		close(begin)
		<-w.c.Opened()
		pass(time.Second)
		w.end()
		w.expectEnds(map[End]int{EndSettled: 1})
	})
}

func TestStopBeforeAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		w.start(Options{After: make(chan struct{})}, func(context.Context, *sluice.Record) error { return nil })
		pass(time.Second)
		w.end()
		w.expectLeft("jobs", "jobs-001")
	})
}

// While Hold is open the consumer is open and ready, and receives nothing.
func TestHold(t *testing.T) {
	for name, released := range map[string]bool{"released": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.stub.send("jobs", body(1))
				hold := make(chan struct{})
				w.start(Options{Hold: hold}, func(context.Context, *sluice.Record) error { return nil })
				<-w.c.Opened()
				pass(30 * time.Minute)
				if n := w.stub.count("ReceiveMessage"); n != 0 {
					t.Errorf("%d receives while it is held", n)
				}
				if h := w.c.NotReady(); len(h) > 0 {
					t.Errorf("not ready: %q", h)
				}
				if !released {
					w.end()
					w.expectLeft("jobs", "jobs-001")
					return
				}
				close(hold)
				pass(time.Second)
				w.end()
				w.expectEnds(map[End]int{EndSettled: 1})
			})
		})
	}
}
