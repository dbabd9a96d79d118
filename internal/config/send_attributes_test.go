package config

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/sqs"
	"github.com/sluicehq/sluice/streamtest"
)

func TestSendAttributes(t *testing.T) {
	send := &Send{To: "fifo", Body: "{pk}", Attributes: Texts{
		{"tenant", "{tenant}"}, {"kind", "{entityType}/{$event}"}, {"n", "{n}"}, {"text", "{n} of {pk}"}, {"lower", "{name|lower}"},
		{"fixed", "orders"}, {"was", "{$old.n}"}, {"of", "of {missing}"},
	}}
	text := func(value string) sluice.MessageAttribute { return sluice.MessageAttribute{Value: value} }
	all := map[string]sluice.MessageAttribute{
		"tenant": text("acme"), "kind": text("order/MODIFY"), "n": {Type: "Number", Value: "3.5"}, "text": text("3.5 of o-1"),
		"lower": text("ada"), "fixed": text("orders"), "was": {Type: "Number", Value: "2"},
	}
	const item = `{"pk":"o-1","entityType":"order","tenant":"acme","n":3.5,"name":"Ada"}`
	for _, tt := range []struct {
		name, item string
		without    []string
	}{
		{"all", item, nil},
		{"a value that is missing", strings.Replace(item, `"tenant":"acme",`, "", 1), []string{"tenant"}},
		{"null", strings.Replace(item, `"acme"`, "null", 1), []string{"tenant"}},
		{"an empty text", strings.Replace(item, `"acme"`, `""`, 1), []string{"tenant"}},
		{"one of two values", strings.Replace(item, `"entityType":"order",`, "", 1), []string{"kind"}},
	} {
		w := newWorld()
		app := w.build(t, one(Route{Name: "tell", Send: send}))
		rec := streamtest.Modify("orders", plain(`{"pk":"o-1","n":2}`), plain(tt.item), streamtest.WithKeys("pk"))
		want := maps.Clone(all)
		for _, name := range tt.without {
			delete(want, name)
		}
		for range 2 { // a repeated record makes the same message
			if err := app.Router.Dispatch(t.Context(), &rec); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
		}
		for _, m := range w.sent {
			if !maps.EqualFunc(m.Attributes, want, func(a, b sluice.MessageAttribute) bool {
				return fmt.Sprint(a) == fmt.Sprint(b)
			}) || m.Body != "o-1" {
				t.Errorf("%s: %+v\nwant %+v", tt.name, m.Attributes, want)
			}
		}
	}
}

func TestSendAttributesExplain(t *testing.T) {
	w := newWorld()
	app := w.build(t, one(Route{Send: &Send{To: "jobs", Body: "keys", Attributes: Texts{{"tenant", "{tenant}"}, {"kind", "{entityType}"}, {"no", "{no}"}}}}))
	rec := streamtest.Insert("orders", plain(`{"pk":"o-1","entityType":"order","tenant":"a b"}`), streamtest.WithKeys("pk"))
	effects, err := app.Routes[0].Explain(t.Context(), &rec)
	if want := (Effect{Does: "send to queue jobs with the attributes kind, tenant", Sink: "jobs", Target: "jobs", Detail: `{"pk":"o-1"} kind="order" tenant="a b"`}); err != nil || len(effects) != 1 || effects[0] != want {
		t.Errorf("%+v, %v\nwant %+v", effects, err, want)
	}
}

// A value that cannot be an attribute fails for good: a map, or an image that the
// stream does not have.
func TestSendAttributesFail(t *testing.T) {
	for template, want := range map[string]string{
		"{tenant}": "the attribute x of the message: {tenant} cannot be known: the MODIFY record came without the image",
		"{$old.n}": "without it; set the table's StreamViewType to ",
		"{at}":     `the attribute x of the message: template "{at}": `,
		"{live}":   "is of type BOOL",
	} {
		o := []streamtest.RecordOption{streamtest.WithKeys("pk")}
		if template == "{tenant}" || template == "{$old.n}" {
			o = append(o, streamtest.WithView(item.KeysOnly))
		}
		c := one(Route{Send: &Send{To: "jobs", Body: "keys", Attributes: Texts{{"x", template}}}})
		c.EntityType = EntityType{Tables: map[string]string{"orders": "order"}}
		w := newWorld()
		rec := streamtest.Modify("orders", plain(`{"pk":"o-1"}`), plain(`{"pk":"o-1","at":{"city":"Kiel"},"live":true}`), o...)
		if err := w.build(t, c).Router.Dispatch(t.Context(), &rec); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) || len(w.sent) > 0 {
			t.Errorf("%s: %v, sent %+v", template, err, w.sent)
		}
	}
}

// A file accepts exactly the names that the queue accepts.
func TestAttributeNamesAreThoseOfTheQueue(t *testing.T) {
	q, err := sqs.New(aws.Config{Region: "us-east-1"}, "jobs", sqs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	long := strings.Repeat("n", 256)
	for name, good := range map[string]bool{
		"a": true, "a.b-c_D9": true, long: true, "aws": true, "awsome.x": true, "amazonx.y": true,
		"": false, long + "n": false, ".a": false, "a.": false, "a..b": false, "a b": false, "ä": false, "aWs.x": false, "AMAZON.x": false, "a\n": false,
	} {
		err := wrongAttribute(Text{name, "x"})
		of := q.Send(gone, sluice.Message{Body: "x", Attributes: map[string]sluice.MessageAttribute{name: {Value: "x"}}})
		if (err == nil) != good || strings.Contains(of.Error(), "attribute name") == good {
			t.Errorf("%q: %v, of the queue: %v; want good %v", name, err, of, good)
		}
	}
}
