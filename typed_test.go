package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

type search struct {
	ID     string `dynamodbav:"PK"`
	Status string `dynamodbav:"status"`
}

// Users need no conversion code of their own.
func TestTyped(t *testing.T) {
	const was, is = `{"PK":{"S":"a"},"status":{"S":"active"}}`, `{"PK":{"S":"a"},"status":{"S":"failed"}}`
	for _, tt := range []struct {
		spec recordtest.Spec
		want string
	}{
		{recordtest.Spec{New: is}, "<nil> &{a failed}"},
		{recordtest.Spec{Old: was, New: is}, "&{a active} &{a failed}"},
		{recordtest.Spec{Old: was}, "&{a active} <nil>"},
		{recordtest.Spec{}, "<nil> <nil>"},
	} {
		rec := recordtest.New(tt.spec)
		got := ""
		h := sluice.Typed(func(_ context.Context, c sluice.Change[search]) error {
			got = fmt.Sprint(c.Old, c.New)
			if c.Record != &rec {
				t.Error("another record")
			}
			return errors.New("its own error")
		})
		if err := h(t.Context(), &rec); err == nil || err.Error() != "its own error" || got != tt.want {
			t.Errorf("%+v: %s, %v; wanted %s", tt.spec, got, err, tt.want)
		}
	}
}

func TestTypedRefuses(t *testing.T) {
	h := sluice.Typed(func(context.Context, sluice.Change[search]) error {
		t.Error("the handler was called")
		return nil
	})
	for image, spec := range map[string]recordtest.Spec{
		"new image": {New: `{"PK":{"BOOL":true}}`},
		"old image": {Old: `{"PK":{"BOOL":true}}`},
	} {
		rec := recordtest.New(spec)
		err := h(t.Context(), &rec)
		var e *item.DecodeError
		if !sluice.IsPermanent(err) || !errors.As(err, &e) || e.Path != "PK" || !strings.Contains(err.Error(), image) {
			t.Errorf("%s: %v", image, err)
		}
	}
}

func ExampleTyped() {
	handler := sluice.Typed(func(_ context.Context, c sluice.Change[search]) error {
		fmt.Println(c.Record.EventName, c.New.ID, c.Old.Status, "→", c.New.Status)
		return nil
	})
	rec := recordtest.New(recordtest.Spec{
		Old: `{"PK":{"S":"a271244"},"status":{"S":"active"}}`,
		New: `{"PK":{"S":"a271244"},"status":{"S":"successful"}}`,
	})
	fmt.Println(handler(context.Background(), &rec))
	// Output:
	// MODIFY a271244 active → successful
	// <nil>
}

func ExampleDecodeEvent() {
	page, err := sluice.DecodeEvent([]byte(`{"Records":[{"eventName":"INSERT","eventSource":"aws:dynamodb",
		"dynamodb":{"SequenceNumber":"42600004062755084192341","Keys":{"PK":{"S":"a"}},"NewImage":{"PK":{"S":"a"},"n":{"N":"1","S":"?"}}}}]}`))
	if err != nil {
		panic(err) // the input is no batch of stream records
	}
	for i := range page.Records {
		rec := &page.Records[i]
		fmt.Println(rec.EventName, rec.Sequence, rec.Err())
	}
	// Output: INSERT 42600004062755084192341 undecodable record: attribute "dynamodb.NewImage.n", offset 172: more than one type tag
}
