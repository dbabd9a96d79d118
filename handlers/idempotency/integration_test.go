//go:build integration

package idempotency

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// local is a table of the test's own on DynamoDB Local.
type local struct {
	*dynamodb.Store
	name string
	now  time.Time
}

func newLocal(t *testing.T) *local {
	t.Helper()
	cfg := localtest.DynamoDB(t)
	db := awsdynamodb.NewFromConfig(cfg)
	name := localtest.Name("idempotency")
	_, err := db.CreateTable(t.Context(), &awsdynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.DeleteTable(context.Background(), &awsdynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	})
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &local{store, name, begin}
}

func (l *local) wrap(h *handler) sluice.Handler {
	return Once("mail", Options{Table: l.name, Write: l.Write, Now: func() time.Time { return l.now }, Payload: func(rec *sluice.Record) []byte {
		v, _ := rec.New.Lookup("amount")
		return v.Raw()
	}})(h.handle)
}

func (l *local) row(t *testing.T) sluice.Item {
	t.Helper()
	it, err := l.Get(t.Context(), l.name, key("mail#test#e-1"))
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// DynamoDB evaluates the expressions as expected.
func TestExpressions(t *testing.T) {
	l, h := newLocal(t), &handler{}
	handle := l.wrap(h)
	var claimed sluice.Item
	h.do = func(context.Context) error {
		claimed = l.row(t)
		return errDown
	}
	if err := handle(t.Context(), event()); !errors.Is(err, errDown) || l.row(t).Exists() {
		t.Fatalf("failed: %v, %s", err, l.row(t).Raw())
	}
	if str(claimed, "status") != "INPROGRESS" || !has(claimed, "claim") || !has(claimed, "validation") {
		t.Errorf("claimed: %s", claimed.Raw())
	}

	// Another claims it, and dies.
	if err := l.Put(t.Context(), l.name, claimed); err != nil {
		t.Fatal(err)
	}
	var busy *inProgressError
	if err := handle(t.Context(), event()); !errors.As(err, &busy) || !busy.Until.Equal(time.UnixMilli(num(claimed, "in_progress_expiration"))) || h.calls != 1 {
		t.Errorf("in progress: %v", err)
	}
	if !l.row(t).Equal(claimed) {
		t.Error("the other's claim is gone")
	}
	l.now = busy.Until.Add(time.Millisecond)
	h.do = nil
	if err := handle(t.Context(), event()); err != nil || h.calls != 2 {
		t.Errorf("taken over: %v", err)
	}
	done := l.row(t)
	if str(done, "status") != "COMPLETED" || str(done, "data") != "null" || has(done, "claim") || num(done, "expiration") != l.now.Add(72*time.Hour).Unix() {
		t.Errorf("done: %s", done.Raw())
	}
	if err := handle(t.Context(), event()); !sluice.IsSkip(err) || h.calls != 2 {
		t.Errorf("again: %v", err)
	}
	other := event()
	other.New = parse(`{"amount":{"N":"6"}}`)
	if err := handle(t.Context(), other); !sluice.IsPermanent(err) {
		t.Errorf("another payload: %v", err)
	}
	l.now = l.now.Add(72*time.Hour + time.Second)
	if err := handle(t.Context(), event()); err != nil || h.calls != 3 {
		t.Errorf("expired: %v", err)
	}
	if err := l.Put(t.Context(), l.name, parse(powertoolsExpired).With(item.String("status", "EXPIRED"), item.Number("expiration", "99999999999"))); err != nil {
		t.Fatal(err)
	}
	if err := handle(t.Context(), event()); err != nil || h.calls != 4 {
		t.Errorf("said to be expired: %v", err)
	}
}

// Our rows keep a function with Powertools out, and theirs us: they claim on
// condition that there is no row, that it has expired, or that it is in progress
// for too long.
func TestOneTableForBoth(t *testing.T) {
	l, h := newLocal(t), &handler{}
	theirs := func(at time.Time) error {
		row := parse(powertoolsRuns).With(item.Number("in_progress_expiration", decimal(at.Add(30*time.Second).UnixMilli())))
		return l.Write(t.Context(), dynamo.Put(l.name, row).
			If("attribute_not_exists(#i) OR #e < :s OR (#st = :running AND attribute_exists(#p) AND #p < :ms)").
			Name("#i", "id").Name("#e", "expiration").Name("#st", "status").Name("#p", "in_progress_expiration").
			Value(":s", at.Unix()).Value(":ms", at.UnixMilli()).Value(":running", "INPROGRESS"))
	}
	h.do = func(context.Context) error {
		if err := theirs(begin); !dynamo.IsCondition(err) {
			t.Errorf("while ours is in progress: %v", err)
		}
		return nil
	}
	if err := l.wrap(h)(t.Context(), event()); err != nil {
		t.Fatal(err)
	}
	if err := theirs(begin.Add(71 * time.Hour)); !dynamo.IsCondition(err) {
		t.Errorf("when ours is done: %v", err)
	}
	if err := theirs(begin.Add(73 * time.Hour)); err != nil {
		t.Errorf("when ours has expired: %v", err)
	}
	for _, tt := range []struct {
		row   string
		calls int
	}{{powertoolsDone, 0}, {powertoolsRuns, 0}, {powertoolsNoContext, 0}, {powertoolsTimedOut, 1}, {powertoolsExpired, 1}} {
		if err := l.Put(t.Context(), l.name, parse(tt.row).Only("id", "expiration", "status", "in_progress_expiration", "data")); err != nil {
			t.Fatal(err)
		}
		h := &handler{}
		if err := l.wrap(h)(t.Context(), event()); h.calls != tt.calls || (err == nil) != (tt.calls == 1) {
			t.Errorf("%s: %v, %d calls", tt.row, err, h.calls)
		}
	}
}
