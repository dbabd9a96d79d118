package kcl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice/state"
)

// Describer is the part of DynamoDB Streams that lists shards.
type Describer interface {
	DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, o ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
}

// Shards lists the shards that a stream has now: their parents by id. A listing can
// lack shards, so it takes all of several, until one brings nothing new.
func Shards(ctx context.Context, api Describer, arn string) (map[string]string, error) {
	all := make(map[string]string)
	for range mostListings {
		before := len(all)
		parents, err := list(ctx, api, arn)
		if err != nil {
			return nil, err
		}
		for id, parent := range parents {
			all[id] = cmp.Or(all[id], parent)
		}
		if before > 0 && len(all) == before {
			break
		}
	}
	return all, nil
}

const mostListings = 5

func list(ctx context.Context, api Describer, arn string) (map[string]string, error) {
	parents := make(map[string]string)
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &arn}
	for {
		out, err := api.DescribeStream(ctx, in)
		if gone := (*types.ResourceNotFoundException)(nil); errors.As(err, &gone) {
			return nil, fmt.Errorf("stream %s is gone: its records are lost, and its leases are of no use: %w", arn, err)
		}
		if err != nil {
			return nil, err
		}
		for _, sh := range out.StreamDescription.Shards {
			parents[aws.ToString(sh.ShardId)] = aws.ToString(sh.ParentShardId)
		}
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return parents, nil
		}
	}
}

// Add adds the leases of one stream to a state. parents are the shards that the
// stream has now. start is where shards begin that KCL has not begun: TRIM_HORIZON, or
// LATEST with a time.
//
// KCL deletes the leases of finished shards. So an ancestor without a lease is finished.
func Add(ctx context.Context, m *state.Memory, s state.Stream, leases []Lease, parents map[string]string, start state.Start) error {
	byID := make(map[string]Lease)
	for _, l := range leases {
		byID[l.ShardID] = l
	}
	for _, l := range leases {
		for id := parentOf(l, parents); id != ""; id = parents[id] {
			if _, leased := byID[id]; !leased {
				if err := m.Finish(ctx, s, id); err != nil {
					return err
				}
			}
		}
	}
	for _, l := range leases {
		sh, err := m.Claim(ctx, s, l.ShardID, parentOf(l, parents), "kcl")
		if err != nil {
			return err
		}
		lease := state.Lease{Stream: s, ShardID: sh.ID, Owner: sh.Owner, Epoch: sh.Epoch}
		var p state.Position
		switch l.Checkpoint {
		case shardEnd:
			p.Finished = true
		case trimHorizon, latest, atTimestamp:
		default:
			p.Sequence = l.Checkpoint
		}
		if err := errors.Join(m.Checkpoint(ctx, []state.Checkpoint{{Lease: lease, Position: p}})...); err != nil {
			return fmt.Errorf("shard %s: %w", l.ShardID, err)
		}
		if err := m.Release(ctx, lease); err != nil {
			return err
		}
	}
	_, err := m.Start(ctx, s, start)
	return err
}

// parentOf returns the parent of a lease's shard. The stream knows it, unless it has
// trimmed the shard.
func parentOf(l Lease, parents map[string]string) string {
	if id, ok := parents[l.ShardID]; ok {
		return id
	}
	if len(l.Parents) > 0 {
		return slices.Min(l.Parents)
	}
	return ""
}

// StartFor returns where shards begin that KCL has not begun. undecided is what leases
// at LATEST or AT_TIMESTAMP are to mean: TRIM_HORIZON or LATEST, which skips records
// until now. If it is empty and there are such leases, StartFor returns an error.
func StartFor(leases []Lease, undecided string, now time.Time) (state.Start, error) {
	n, begun := 0, 0
	for _, l := range leases {
		switch l.Checkpoint {
		case latest, atTimestamp:
			n++
		default:
			begun++
		}
	}
	switch {
	case n == 0, undecided == trimHorizon:
		return state.Start{Position: trimHorizon}, nil
	case undecided == "":
		return state.Start{}, fmt.Errorf("%d of %d leases are at %s or %s: KCL has stored no position. Say --latest TRIM_HORIZON to handle every record in their shards, or --latest LATEST to skip all records until now", n, len(leases), latest, atTimestamp)
	case begun > 0: // a start at LATEST also skips records of their children
		return state.Start{}, fmt.Errorf("--latest LATEST would also skip records of the %d shards that KCL has begun: say --latest TRIM_HORIZON", begun)
	}
	return state.Start{Position: latest, At: now}, nil
}
