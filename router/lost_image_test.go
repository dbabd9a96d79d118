package router

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// A record that lacks the image that its stream sends, as some deletions of
// DynamoDB Local do, fails for the routes that need it, and for no other.
func TestRecordWithoutAnImageOfItsStream(t *testing.T) {
	r := New(TypeFrom(Table(map[string]string{"test": "order"})))
	var called []string
	handler := func(name string) sluice.Handler {
		return func(context.Context, *sluice.Record) error {
			called = append(called, name)
			return nil
		}
	}
	r.Handle("order#REMOVE", handler("document"), Name("document"), NeedsBoth())
	r.Handle("order#REMOVE", handler("clean up"), Name("clean up"))
	r.Handle("order#MODIFY order#REMOVE", handler("status"), Name("status"), Changed("status"))
	rec := recordtest.New(recordtest.Spec{Event: sluice.Remove})
	routes, err := r.Match(nil, &rec)
	if err != nil || len(routes) != 3 {
		t.Fatalf("Match = %q, %v", names(routes), err)
	}
	const want = "needs the old image: the REMOVE record does not have it although the stream should send one"
	for _, rt := range routes {
		err := rt.Handler(t.Context(), &rec)
		if rt.Name == "clean up" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), rt.Name) || strings.Contains(err.Error(), "set the table's StreamViewType") {
			t.Errorf("%s: %v", rt.Name, err)
		}
	}
	verdicts, err := r.Explain(&rec)
	if err != nil || len(verdicts) != len(routes) {
		t.Fatalf("Explain = %+v, %v", verdicts, err)
	}
	for i, v := range verdicts {
		if !v.Takes || v.Route != routes[i] || (v.Err == nil) != (v.Route.Name == "clean up") {
			t.Errorf("Explain says of %s: %+v", v.Route.Name, v)
		}
	}
	if err := r.Dispatch(t.Context(), &rec); !errors.As(err, new(*lostImageError)) || strings.Join(called, ", ") != "clean up, clean up" {
		t.Errorf("Dispatch: %v, called %q", err, called)
	}
	called = nil
	whole := recordtest.New(recordtest.Spec{Event: sluice.Remove, Old: `{"pk":{"S":"a"},"status":{"S":"x"}}`})
	if err := r.Dispatch(t.Context(), &whole); err != nil || strings.Join(called, ", ") != "document, clean up" {
		t.Errorf("a whole record: %v, called %q", err, called)
	}

	// An update may lose one image or the other. Explain agrees with Match.
	for i, lost := range []recordtest.Spec{
		{Event: sluice.Modify, New: `{"pk":{"S":"a"},"status":{"S":"x"}}`},
		{Event: sluice.Modify, Old: `{"pk":{"S":"a"},"status":{"S":"x"}}`},
		{Event: sluice.Remove},
		{Event: sluice.Remove},
	} {
		rec := recordtest.New(lost)
		if i == 3 {
			rec.Origin = sluice.Redriven
		}
		routes, err := r.Match(nil, &rec)
		if rec.Origin != sluice.Redriven && err != nil {
			t.Errorf("%+v: %v", lost, err)
		}
		verdicts, _ := r.Explain(&rec)
		var takes []*sluice.Route
		for _, v := range verdicts {
			if v.Takes {
				takes = append(takes, v.Route)
				if fails := v.Route.Handler(t.Context(), &rec); (v.Err == nil) != (fails == nil) {
					t.Errorf("%+v: %s fails with %v, and Explain says %v", lost, v.Route.Name, fails, v.Err)
				}
			}
		}
		if !slices.Equal(routes, takes) {
			t.Errorf("%+v: Match returns %q, Explain %q", lost, names(routes), names(takes))
		}
	}

	// If only the lost image has the type, the routes are unknown.
	r = New()
	r.Handle("order#REMOVE", handler("order"))
	if _, err := r.Match(nil, &rec); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "the REMOVE record has none although the stream should send one") {
		t.Error(err)
	}
}
