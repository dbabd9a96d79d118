package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/reread"
	"github.com/sluicehq/sluice/sources/poller"
)

// one shows the record with a sequence number, such as a record that a daemon
// holds.
func (t *tail) one(ctx context.Context, cfg aws.Config, s poller.Stream) error {
	arn := s.ARN
	if arn == "" {
		table, err := describeTable(ctx, cfg, s.Table)
		if err != nil {
			return err
		}
		if arn = aws.ToString(table.LatestStreamArn); arn == "" {
			return fmt.Errorf("table %q has no stream", s.Table)
		}
	}
	rec, err := reread.New(cfg).Record(ctx, arn, "", sluice.Sequence(t.sequence), "")
	if err != nil {
		return err
	}
	if err := rec.Err(); err != nil {
		return fmt.Errorf("record %s: %w", t.sequence, err)
	}
	_ = t.show(ctx, rec)
	return t.err
}
