package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/rows"
)

// CreateOptions are choices for a new state table.
type CreateOptions struct {
	// PointInTimeRecovery keeps continuous backups for 35 days. AWS charges for
	// them by the table's size.
	PointInTimeRecovery bool
	Tags                map[string]string
}

// readyWithin bounds the wait for a new table.
const readyWithin = 2 * time.Minute

// Create makes the state table and waits until it is ready. It is billed by
// request. If the table exists, Create keeps its tags and items, and returns an error
// if it cannot hold state.
//
// It needs the permissions dynamodb:CreateTable, DescribeTable, Scan,
// DescribeTimeToLive and UpdateTimeToLive; with tags TagResource; with point-in-time
// recovery UpdateContinuousBackups.
func Create(ctx context.Context, cfg aws.Config, table string, o CreateOptions) error {
	db := dynamodb.NewFromConfig(cfg)
	in := &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(rows.PartitionKey), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(rows.SortKey), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(rows.PartitionKey), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(rows.SortKey), KeyType: types.KeyTypeRange},
		},
	}
	for _, k := range slices.Sorted(maps.Keys(o.Tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(k), Value: aws.String(o.Tags[k])})
	}
	_, err := db.CreateTable(ctx, in)
	inUse := (*types.ResourceInUseException)(nil)
	existed := errors.As(err, &inUse)
	if err != nil && !existed {
		return explain(table, "CreateTable", err)
	}
	describe := &dynamodb.DescribeTableInput{TableName: &table}
	if err := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Second/2, 5*time.Second
	}).Wait(ctx, describe, readyWithin); err != nil {
		return explain(table, "DescribeTable", err)
	}
	if err := check(ctx, db, table); err != nil {
		return err
	}
	if existed {
		if err := ours(ctx, db, table); err != nil {
			return err
		}
	}
	if err := expire(ctx, db, table); err != nil {
		return err
	}
	if o.PointInTimeRecovery {
		return recoverable(ctx, db, table)
	}
	return nil
}

// expire has the table delete the rows of dead members.
func expire(ctx context.Context, db *dynamodb.Client, table string) error {
	enabled := func() (bool, error) {
		out, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		if err != nil {
			return false, explain(table, "DescribeTimeToLive", err)
		}
		d := out.TimeToLiveDescription
		return d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling), nil
	}
	if done, err := enabled(); done || err != nil {
		return err
	}
	_, err := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &table, TimeToLiveSpecification: &types.TimeToLiveSpecification{
		AttributeName: aws.String(expiresName), Enabled: aws.Bool(true),
	}})
	if err == nil {
		return nil
	}
	// Another process may have enabled it meanwhile, which the service refuses.
	if done, _ := enabled(); done {
		return nil
	}
	return explain(table, "UpdateTimeToLive", err)
}

// recoverable turns on point-in-time recovery. The service refuses that for a while
// after a table was made.
func recoverable(ctx context.Context, db *dynamodb.Client, table string) error {
	in := &dynamodb.UpdateContinuousBackupsInput{TableName: &table,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)}}
	for begun := time.Now(); ; {
		_, err := db.UpdateContinuousBackups(ctx, in)
		busy := (*types.ContinuousBackupsUnavailableException)(nil)
		if err == nil || !errors.As(err, &busy) || time.Since(begun) > readyWithin {
			return explain(table, "UpdateContinuousBackups", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
		}
	}
}

// check returns an error if the table is missing or cannot hold state.
func check(ctx context.Context, db *dynamodb.Client, table string) error {
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return explain(table, "DescribeTable", err)
	}
	var keys []string
	for _, k := range out.Table.KeySchema {
		keys = append(keys, *k.AttributeName)
	}
	if len(out.Table.Replicas) > 0 {
		return fmt.Errorf("table %s is a global table: workers of two Regions would both have a shard: name a table without replicas", table)
	}
	if want := []string{rows.PartitionKey, rows.SortKey}; !slices.Equal(keys, want) {
		return fmt.Errorf("table %s has the key %v: a state table has %v: name another table, or one that does not exist", table, keys, want)
	}
	return nil
}

// ours returns an error if a table has items of somebody else: time to live could
// delete them.
func ours(ctx context.Context, db *dynamodb.Client, table string) error {
	out, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: &table, Limit: aws.Int32(1), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return explain(table, "Scan", err)
	}
	for _, item := range out.Items {
		if _, ok := item[rows.TokenName]; !ok {
			return fmt.Errorf("table %s has other items and is no state table: name another table, or one that does not exist", table)
		}
	}
	return nil
}

func explain(table, call string, err error) error {
	if err == nil {
		return nil
	}
	if hint := awserror.Hint(err, "dynamodb:"+call, "table", "name or the region"); hint != "" {
		call += ": " + hint
	}
	return fmt.Errorf("state table %s: %s: %w", table, call, err)
}
