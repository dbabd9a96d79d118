package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// A daemon has started once it reads, also while every route fails. A daemon that
// cannot open its sources has not started. /startedz names no cause.
func TestStartedz(t *testing.T) {
	tables, queues := []string{"orders"}, []string{"jobs"}
	for name, tt := range map[string]struct {
		o       Options
		refused string // by AWS, so that it does not start
		want    string
	}{
		"tables":                      {Options{Tables: tables}, "", "200 ok\n"},
		"queues":                      {Options{Queues: queues}, "", "200 ok\n"},
		"both":                        {Options{Tables: tables, Queues: queues}, "", "200 ok\n"},
		"a stream that cannot be had": {Options{Tables: tables}, "DescribeStream", "503 starting: the streams are not open yet\n"},
		"a queue that cannot be had":  {Options{Queues: queues}, "GetQueueUrl", "503 starting: the queues are not open yet\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				table := c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
				if tt.refused != "" {
					c.refuse(tt.refused)
				}
				m := router.New()
				for _, pattern := range []string{"*#*", "*#MESSAGE"} {
					m.Handle(pattern, func(context.Context, *sluice.Record) error { return errors.New("the sink is down") }, router.Name(pattern))
				}
				for i := range 30 {
					table.Put(map[string]any{"id": fmt.Sprint(i)})
					c.send(fmt.Sprintf(`{"kind":"job","n":%d}`, i))
				}
				w := wire(t, c, m, tt.o)
				time.Sleep(time.Minute)
				rec := httptest.NewRecorder()
				startedz(w.starting).ServeHTTP(rec, nil)
				if got := fmt.Sprint(rec.Code, " ", rec.Body); got != tt.want {
					t.Errorf("/startedz: %q, want %q", got, tt.want)
				}
				if len(w.unready()) == 0 {
					t.Error("the daemon is ready, and was not to be")
				}
				if tt.refused == "" {
					w.stop()
				} else if err := <-w.ended; err == nil {
					t.Error("the daemon has started")
				}
			})
		})
	}
}
