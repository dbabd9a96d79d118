package escalation_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/item"
)

func attributes(s string) sluice.Item {
	it, err := item.Parse([]byte(s))
	if err != nil {
		panic(err)
	}
	return it
}

// An incident rings the people of a team, the later ones after a wait.
func Example() {
	e, err := escalation.New(escalation.Config{
		Escalation: escalation.EscalationAttributes{ID: "id", Ladder: "team", Started: "opened", Status: "status", Active: "open"},
		Step:       escalation.StepAttributes{ID: "person", Order: "rank", WaitSeconds: "wait"},
		Attempt:    escalation.AttemptAttributes{Escalation: "incident", Number: "n", Order: "rank", StepID: "person", At: "rang"},
		Table:      "incidents",
		Key:        func(id string) sluice.Item { return item.Of(item.String("id", id)) },
		Get: func(ctx context.Context, id string) (sluice.Item, error) { // GetItem, consistently
			return attributes(`{"id":{"S":"I-1"},"team":{"S":"night"},"opened":{"S":"2019-12-30T20:00:00Z"},"status":{"S":"open"}}`), nil
		},
		Query: func(ctx context.Context, team string) ([]sluice.Item, error) { // Query, consistently
			return []sluice.Item{
				attributes(`{"person":{"S":"bo"},"rank":{"N":"2"},"wait":{"N":"600"}}`),
				attributes(`{"person":{"S":"al"},"rank":{"N":"1"},"wait":{"N":"0"}}`),
			}, nil
		},
		GetAttempt: func(ctx context.Context, id string, round, number int64) (sluice.Item, error) { // GetItem, consistently
			return sluice.Item{}, nil
		},
		Write: func(ctx context.Context, op dynamo.Op) error { return nil }, // sinks/dynamodb.Store.Write
		Fail: func(ctx context.Context, e escalation.Escalation, reason string) error { // UpdateItem, if still open
			return nil
		},
		StepBody: func(t escalation.Try) []byte {
			var b message.Body
			return b.Str("ring", t.Step.ID).Time("notBefore", t.NotBefore).Str("dedupeKey", t.DedupeKey).Bytes()
		},
		ExpiryBody: func(x escalation.Expiry) []byte {
			var b message.Body
			return b.Str("exhausted", x.Escalation.ID).Time("notBefore", x.NotBefore).Str("dedupeKey", x.DedupeKey).Bytes()
		},
		ExpireAfter: 5 * time.Minute,
		Send: func(ctx context.Context, m sluice.Message) error { // sqs.Queue.Send
			fmt.Printf("in %v: %s\n", m.Delay, m.Body)
			return nil
		},
		Watch: escalation.Watchdog{
			Kind: "incident.watch",
			Send: func(ctx context.Context, m sluice.Message) error { // sqs.Queue.Send of another queue
				fmt.Printf("in %v: %s\n", m.Delay, m.Body)
				return nil
			},
			Alarm: func(ctx context.Context, a escalation.Alarm) error { return nil }, // page an operator
		},
		Now: func() time.Time { return time.Date(2019, 12, 30, 20, 0, 5, 0, time.UTC) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	// Usually: r.Handle("incident#INSERT", e.Start), r.Handle("incident#MODIFY",
	// e.Resume), r.Handle("ring#INSERT", e.Next) and
	// r.Handle("incident.watch#MESSAGE", e.Watch).
	ctx := context.Background()
	_ = e.Start(ctx, &sluice.Record{
		Keys: attributes(`{"id":{"S":"I-1"}}`), Created: time.Date(2019, 12, 30, 20, 0, 1, 0, time.UTC),
	})
	for n, person := range []string{"al", "bo"} {
		rang := fmt.Sprintf(`{"incident":{"S":"I-1"},"n":{"N":"%d"},"rank":{"N":"%d"},"person":{"S":%q},"rang":{"S":"2019-12-30T20:00:04Z"}}`, n, n+1, person)
		_ = e.Next(ctx, &sluice.Record{New: attributes(rang)})
	}
	// Output:
	// in 56s: {"kind":"incident.watch","escalation":"I-1","round":0,"number":0,"notBefore":"2019-12-30T20:01:01Z","dedupeKey":"I-1#watch/2019-12-30T20:01:01Z"}
	// in 0s: {"ring":"al","notBefore":"2019-12-30T20:00:00Z","dedupeKey":"I-1#0"}
	// in 9m59s: {"ring":"bo","notBefore":"2019-12-30T20:10:04Z","dedupeKey":"I-1#1"}
	// in 4m59s: {"exhausted":"I-1","notBefore":"2019-12-30T20:05:04Z","dedupeKey":"I-1#expire"}
}
