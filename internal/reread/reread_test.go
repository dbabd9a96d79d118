package reread

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/streamtest"
)

// Trimmed records are reported as such, and never silently missing from a range.
func TestTrimmed(t *testing.T) {
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	var seqs []sluice.Sequence
	for _, id := range []string{"one", "two", "three"} {
		seqs = append(seqs, table.Put(map[string]any{"id": id}))
	}
	shard := table.Shards()[0].ID
	r := New(aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), BaseEndpoint: aws.String(svc.URL())})
	r.pause = time.Millisecond
	n := 0
	count := func(recs []sluice.Record) error {
		n += len(recs)
		if recs[0].Origin != sluice.Replayed {
			t.Errorf("origin %v", recs[0].Origin)
		}
		return nil
	}
	rng := Range{table.StreamARN(), shard, seqs[0], seqs[2]}
	if err := r.Records(t.Context(), rng, count); err != nil || n != 3 {
		t.Fatalf("%d records, %v", n, err)
	}
	if rec, err := r.Record(t.Context(), table.StreamARN(), "", seqs[1], ""); err != nil || rec.Sequence != seqs[1] {
		t.Errorf("%+v, %v", rec, err)
	}
	table.Trim(shard, 2)
	n = 0
	if err := r.Records(t.Context(), rng, count); !errors.Is(err, ErrTrimmed) || n != 0 {
		t.Errorf("trimmed: %d records, %v", n, err)
	}
	if _, err := r.Record(t.Context(), table.StreamARN(), "", seqs[0], ""); !errors.Is(err, ErrTrimmed) {
		t.Errorf("trimmed: %v", err)
	}
	if _, err := r.Record(t.Context(), table.StreamARN(), "", seqs[2], ""); err != nil {
		t.Errorf("what is behind the trim: %v", err)
	}
	if err := r.Records(t.Context(), Range{table.StreamARN(), shard, seqs[2], seqs[0]}, count); err == nil {
		t.Error("a range that ends before it begins")
	}
}
