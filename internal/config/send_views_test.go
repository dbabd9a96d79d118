package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// A template that reads an image which the stream lacks would write null for every
// record. The route is refused, as with the image as body.
func TestSendNeedsTheImagesOfItsTemplates(t *testing.T) {
	const images = "without it; set the table's StreamViewType to "
	const cannot = "cannot be known: the "
	before, after := plain(`{"pk":"o-1","entityType":"order","n":2}`), plain(`{"pk":"o-1","entityType":"order","n":3}`)
	for _, tt := range []struct {
		send  Send
		view  item.View
		event sluice.EventName
		want  string // the body, or the error
	}{
		{Send{Body: "old"}, item.NewImage, sluice.Modify, images},
		{Send{Body: `{"was":{$old.n}}`}, item.NewImage, sluice.Modify, images},
		{Send{Body: `{"was":{$old.n}}`}, item.NewImage, sluice.Remove, images},
		{Send{Body: `{"was":{$old.n}}`}, item.BothImages, sluice.Modify, `{"was":2}`},
		{Send{Body: `{"was":{$old.no}}`}, item.BothImages, sluice.Modify, `{"was":null}`},
		{Send{Body: `{"was":{$old.n}}`}, item.NewImage, sluice.Insert, `{"was":null}`},
		{Send{Body: `{"was":"{$old.n}"}`}, item.NewImage, sluice.Modify, images},
		{Send{Body: `{"was":{$old.n|lower}}`}, item.NewImage, sluice.Modify, images},
		{Send{Body: `was {$old.n}`}, item.NewImage, sluice.Modify, images},
		{Send{Body: `{"is":{$new.n}}`}, item.OldImage, sluice.Modify, images},
		{Send{Body: `{"is":{$new.n}}`}, item.OldImage, sluice.Remove, `{"is":null}`},
		{Send{Body: "keys", Group: "{$old.n}"}, item.NewImage, sluice.Modify, images},
		{Send{Body: "keys", Dedupe: "{$old.n}"}, item.NewImage, sluice.Modify, images},
		// An attribute of the item, from any image.
		{Send{Body: `{"n":{n}}`}, 0, sluice.Modify, "{n} " + cannot + "MODIFY"},
		{Send{Body: `{"n":{n}}`}, item.OldImage, sluice.Modify, "{n} " + cannot + "MODIFY"},
		{Send{Body: `{"n":"{n}"}`}, item.OldImage, sluice.Modify, "{n} " + cannot + "MODIFY"},
		{Send{Body: `n {n}`}, item.OldImage, sluice.Modify, "{n} " + cannot + "MODIFY"},
		{Send{Body: `{"n":{n}}`}, item.NewImage, sluice.Remove, "{n} " + cannot + "REMOVE"},
		{Send{Body: `{"n":{n}}`}, item.OldImage, sluice.Remove, `{"n":2}`},
		{Send{Body: `{"pk":{pk},"event":"{$event}"}`}, 0, sluice.Remove, `{"pk":"o-1","event":"REMOVE"}`},
	} {
		t.Run(fmt.Sprintf("%+v of %v %s", tt.send, tt.view, tt.event), func(t *testing.T) {
			w := newWorld()
			c := one(Route{Name: "tell", On: Strings{"*#*"}, Send: &tt.send})
			c.EntityType = EntityType{Tables: map[string]string{"orders": "order"}}
			tt.send.To = "jobs"
			if tt.send.Group+tt.send.Dedupe != "" {
				tt.send.To = "fifo"
			}
			app := w.build(t, c)
			o := []streamtest.RecordOption{streamtest.WithKeys("pk"), streamtest.WithView(tt.view)}
			rec := streamtest.Modify("orders", before, after, o...)
			switch tt.event {
			case sluice.Insert:
				rec = streamtest.Insert("orders", after, o...)
			case sluice.Remove:
				rec = streamtest.Remove("orders", before, o...)
			}
			err := app.Router.Dispatch(t.Context(), &rec)
			if strings.HasPrefix(tt.want, "{\"") {
				if err != nil || len(w.sent) != 1 || w.sent[0].Body != tt.want {
					t.Errorf("%+v, %v; want %s", w.sent, err, tt.want)
				}
			} else if !sluice.IsPermanent(err) || !strings.Contains(fmt.Sprint(err), tt.want) || len(w.sent) > 0 {
				t.Errorf("%+v, %v; want %s", w.sent, err, tt.want)
			}
		})
	}
}
