package lambda

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

// Images count, not the stated view type. A record without an image that its route
// reads fails alone, and its error says what to do. A record with the images is
// handled, whatever it states.
func TestViewTypes(t *testing.T) {
	const (
		both = `"NewImage":{"pk":{"S":"a"},"entityType":{"S":"search"}},"OldImage":{"pk":{"S":"a"},"entityType":{"S":"search"}},`
		keys = ``
	)
	record := func(seq, images, view string) string {
		return `{"eventID":"e` + seq + `","eventName":"MODIFY","eventSourceARN":"arn:aws:dynamodb:eu-west-1:000000000000:table/manhunt/stream/2025-03-01T08:30:00.125",` +
			`"dynamodb":{"Keys":{"pk":{"S":"` + seq + `"}},` + images + `"SequenceNumber":"` + seq + `","StreamViewType":"` + view + `"}}`
	}
	for _, tt := range []struct {
		name    string
		records []string
		answer  string
		log     []string
	}{
		{"one record misstates its view", []string{record("#1", both, "NEW_AND_OLD_IMAGES"), record("#2", both, "KEYS_ONLY")}, allDone, nil},
		{"all records do", []string{record("#1", both, "NEW_IMAGE")}, allDone, nil},
		{"a poor stream", []string{record("#1", keys, "KEYS_ONLY"), record("#2", keys, "KEYS_ONLY")},
			`{"batchItemFailures":[{"itemIdentifier":"#1"}]}`,
			[]string{"table manhunt", "sequence number #1", "MODIFY record came without", "StreamViewType to NEW_AND_OLD_IMAGES", "KEYS_ONLY"}},
		{"a poor record", []string{record("#1", both, "NEW_AND_OLD_IMAGES"), record("#2", strings.Replace(both, "OldImage", "Other", 1), "NEW_IMAGE")},
			`{"batchItemFailures":[{"itemIdentifier":"#2"}]}`,
			[]string{"sequence number #2", `"search#MODIFY`, "needs the old image", "StreamViewType to NEW_AND_OLD_IMAGES", "NEW_IMAGE"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := router.New()
			handled := 0
			r.Handle("search#MODIFY", func(context.Context, *sluice.Record) error { handled++; return nil }, router.NeedsBoth())
			var log bytes.Buffer
			h := NewHandler(r, Options{Concurrency: 1, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			got := invoke(t, t.Context(), h, []byte(withNumbers(`{"Records":[`+strings.Join(tt.records, ",")+`]}`)))
			if want := withNumbers(tt.answer); got != want {
				t.Errorf("answer %s, want %s", got, want)
			}
			if tt.log == nil && handled != len(tt.records) {
				t.Errorf("%d of %d records were handled", handled, len(tt.records))
			}
			text := strings.ReplaceAll(log.String(), `\"`, `"`)
			for _, want := range tt.log {
				if !strings.Contains(text, withNumbers(want)) {
					t.Errorf("log lacks %q:\n%s", want, text)
				}
			}
		})
	}
}
