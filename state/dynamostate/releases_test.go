package dynamostate

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/job"
	"github.com/sluicehq/sluice/internal/releasetest"
	"github.com/sluicehq/sluice/state"
)

// The rows of all releases are read, and gone on with: those of a fleet, whose worker has
// ended in the middle of its work.
func TestReleases(t *testing.T) {
	report := holders.Report{
		At: time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC), Held: 1, Tables: []holders.TableReport{{Table: "test", LagSeconds: 20, Unsettled: 3}},
		Routes: []holders.RouteReport{{Route: "mail", State: "outage", PerSecond: 1.5, Failing: 1, Waiting: 2, Error: "down"}},
		Items:  []holders.Item{{Source: "stream", Table: "test", Shard: "shardId-2", Sequence: "10", Key: "00ff", Route: "mail", Attempts: 3, AgeSeconds: 4, Bytes: 5, Error: "down"}},
	}
	const reporting = "workers/host/1/AAAA"
	releasetest.Each(t, "rows.jsonl", *update, func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			table := new(memory)
			s := over(table)
			releasetest.Fill(t, s)
			reporter := holders.Reporter{Store: s, App: releasetest.App}
			if err := reporter.Report(t.Context(), reporting[len("workers/"):], report); err != nil {
				t.Fatal(err)
			}
			_, release, err := job.Hold(t.Context(), s, releasetest.App, job.Redrive)
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			for _, item := range table.Items() { // as long as all live
				data, err := attributevalue.MarshalMapJSON(item)
				if err != nil {
					t.Fatal(err)
				}
				text.Write(append(data, '\n'))
			}
			release()
			if err := errors.Join(s.Close(), os.WriteFile(path, text.Bytes(), 0o600)); err != nil {
				t.Fatal(err)
			}
		})
	}, func(t *testing.T, path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			table := new(memory)
			for line := range bytes.Lines(data) {
				item, err := attributevalue.UnmarshalMapJSON(line)
				if err != nil {
					t.Fatal(err)
				}
				table.Add(item)
			}
			s := over(table)
			stored, ok, err := s.GetValue(t.Context(), releasetest.App, reporting)
			var got holders.Report
			if err := errors.Join(err, json.Unmarshal(stored, &got)); err != nil || !ok || !reflect.DeepEqual(got, report) {
				t.Errorf("report %+v, %v, want %+v", got, err, report)
			}
			jobs, err := s.Shards(t.Context(), job.Stream(releasetest.App))
			if err != nil || len(jobs) != 1 || jobs[0].ID != job.Redrive || jobs[0].Owner == "" || jobs[0].Position == (state.Position{}) {
				t.Errorf("jobs %+v, %v", jobs, err)
			}
			releasetest.Check(t, s, time.Sleep)
			_, release, err := job.Hold(t.Context(), s, releasetest.App, job.Redrive)
			if err != nil {
				t.Fatalf("a job whose worker has ended: %v", err)
			}
			release()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	})
}
