package idempotency

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// Rows as AWS Lambda Powertools for Python writes them, under an id of ours.
// The clock stands at 946684800 (2000-01-01).
const (
	powertoolsDone      = `{"id":{"S":"mail#test#e-1"},"expiration":{"N":"946688400"},"status":{"S":"COMPLETED"},"in_progress_expiration":{"N":"946684830000"},"data":{"S":"{\"message\": \"success\", \"statusCode\": 200}"},"validation":{"S":"e4da3b7fbbce2345d7772b0674a318d5"}}`
	powertoolsRuns      = `{"id":{"S":"mail#test#e-1"},"expiration":{"N":"946688400"},"status":{"S":"INPROGRESS"},"in_progress_expiration":{"N":"946684830000"}}`
	powertoolsNoContext = `{"id":{"S":"mail#test#e-1"},"expiration":{"N":"946688400"},"status":{"S":"INPROGRESS"}}`
	powertoolsTimedOut  = `{"id":{"S":"mail#test#e-1"},"expiration":{"N":"946688400"},"status":{"S":"INPROGRESS"},"in_progress_expiration":{"N":"946684799999"}}`
	powertoolsExpired   = `{"id":{"S":"mail#test#e-1"},"expiration":{"N":"946684799"},"status":{"S":"COMPLETED"},"in_progress_expiration":{"N":"946681230000"},"data":{"S":"null"}}`
)

func TestRowsOfPowertools(t *testing.T) {
	for _, tt := range []struct {
		name, row string
		calls     int
		wait      time.Duration // of a retry
	}{
		{"done", powertoolsDone, 0, 0},
		{"in progress", powertoolsRuns, 0, 30*time.Second + time.Millisecond},
		{"in progress without an end", powertoolsNoContext, 0, time.Hour + time.Second + time.Millisecond},
		{"timed out", powertoolsTimedOut, 1, 0},
		{"expired", powertoolsExpired, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tb, h := newTable(tt.row), &handler{}
				err := tb.wrap(h)(t.Context(), event())
				var retry *outcomes.Retry
				if errors.As(err, &retry) != (tt.wait > 0) || retry != nil && retry.After != tt.wait || h.calls != tt.calls {
					t.Errorf("%v, %d calls", err, h.calls)
				}
				if tt.calls == 0 && tt.wait == 0 && !sluice.IsSkip(err) || tt.calls == 1 && err != nil {
					t.Error(err)
				}
				if tt.calls == 0 && string(tb.rows["mail#test#e-1"].Raw()) != tt.row {
					t.Errorf("the row is now %s", tb.rows["mail#test#e-1"].Raw())
				}
			})
		})
	}
}

// Rows of Sluice have the attributes that Powertools reads: an id, a known status,
// expiration in seconds, in_progress_expiration in milliseconds, data as JSON.
func TestRowsForPowertools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb, h := newTable(), &handler{}
		var during sluice.Item
		h.do = func(context.Context) error {
			during = tb.rows["mail#test#e-1"]
			return nil
		}
		payload := func(o *Options) { o.Payload = func(*sluice.Record) []byte { return []byte("5") } }
		if err := tb.wrap(h, payload)(t.Context(), event()); err != nil {
			t.Fatal(err)
		}
		const sha = "ef2d127de37b942baad06145e54b0c619a1f22327b2ebbcfbec78f5564afe39d" // of "5"
		claimed := `{"id":{"S":"mail#test#e-1"},"expiration":{"N":"946944000"},"in_progress_expiration":{"N":"946684860000"},"status":{"S":"INPROGRESS"},"claim":{"S":"` + str(during, "claim") + `"},"validation":{"S":"` + sha + `"}}`
		if !during.Equal(parse(claimed)) || str(during, "claim") == "" {
			t.Errorf("claimed %s\nwant    %s", during.Raw(), claimed)
		}
		done := `{"id":{"S":"mail#test#e-1"},"expiration":{"N":"946944000"},"in_progress_expiration":{"N":"946684860000"},"status":{"S":"COMPLETED"},"data":{"S":"null"},"validation":{"S":"` + sha + `"}}`
		if got := tb.rows["mail#test#e-1"]; !got.Equal(parse(done)) {
			t.Errorf("done %s\nwant %s", got.Raw(), done)
		}
	})
}
