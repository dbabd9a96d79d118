// Package kcl reads the lease table of an application of the Kinesis Client Library
// (versions 2 and 3) with the DynamoDB Streams adapter.
//
// The attributes of a lease are those of the library's DynamoDBLeaseSerializer and
// DynamoDBMultiStreamLeaseSerializer, and the names of streams those of the adapter's
// KinesisMapperUtil.
package kcl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
)

// The checkpoints that are no sequence numbers.
const (
	trimHorizon = "TRIM_HORIZON"
	latest      = "LATEST"
	shardEnd    = "SHARD_END"
	atTimestamp = "AT_TIMESTAMP"
)

// Lease is the lease of one shard.
type Lease struct {
	Stream     string // ARN; empty if the application has one stream
	ShardID    string
	Checkpoint string // a sequence number, or one of the constants
	Parents    []string
	Owner      string
	counter    int64 // grows while the owner lives
}

// Read reads all leases of a table. The reads are consistent.
func Read(ctx context.Context, db dynamodb.ScanAPIClient, table string) ([]Lease, error) {
	var all []Lease
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			if hint := awserror.Hint(err, "dynamodb:Scan", "table", "name or the region"); hint != "" {
				err = fmt.Errorf("%s: %w", hint, err)
			}
			return nil, err
		}
		for _, item := range page.Items {
			var row struct {
				Key        string   `dynamodbav:"leaseKey"`
				Kind       string   `dynamodbav:"entityType"` // since version 3.5, which keeps other rows in the table, too
				Checkpoint string   `dynamodbav:"checkpoint"`
				Parents    []string `dynamodbav:"parentShardId"`
				Owner      string   `dynamodbav:"leaseOwner"`
				Counter    int64    `dynamodbav:"leaseCounter"`
			}
			if err := attributevalue.UnmarshalMap(item, &row); err != nil {
				return nil, err
			}
			if row.Kind != "" && row.Kind != "LEASE" {
				continue
			}
			l := Lease{Checkpoint: row.Checkpoint, Parents: row.Parents, Owner: row.Owner, counter: row.Counter}
			if err := l.parse(row.Key); err != nil {
				return nil, err
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// parse reads the key of a lease: the id of a shard, or, for an application of several
// streams, account:region$account$table$label:1:shardId. A label has _ for each colon.
func (l *Lease) parse(key string) error {
	l.ShardID = key
	if at := strings.LastIndexByte(key, ':'); at >= 0 {
		stream := strings.Split(key[:at], ":")
		if len(stream) != 3 {
			return fmt.Errorf("lease %q is not of a stream of DynamoDB", key)
		}
		parts := strings.Split(stream[1], "$")
		if len(parts) != 4 {
			return fmt.Errorf("lease %q is not of a stream of DynamoDB", key)
		}
		l.Stream = fmt.Sprintf("arn:%s:dynamodb:%s:%s:table/%s/stream/%s", partition(parts[0]), parts[0], parts[1], parts[2], strings.ReplaceAll(parts[3], "_", ":"))
		l.ShardID = key[at+1:]
	}
	if !strings.HasPrefix(l.ShardID, "shardId-") {
		return fmt.Errorf("%q is not the key of a lease: is it a lease table of KCL?", key)
	}
	switch l.Checkpoint {
	case trimHorizon, latest, shardEnd, atTimestamp:
	default:
		if !sluice.Sequence(l.Checkpoint).Valid() {
			return fmt.Errorf("lease %q has the checkpoint %q, which is no sequence number of DynamoDB", key, l.Checkpoint)
		}
	}
	return nil
}

// partition returns the partition of AWS that has a region.
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// Living returns the owners that wrote a lease between two reads of a table.
func Living(before, after []Lease) []string {
	type key struct{ stream, shard string }
	was := make(map[key]Lease)
	for _, l := range before {
		was[key{l.Stream, l.ShardID}] = l
	}
	var owners []string
	for _, l := range after {
		if b, ok := was[key{l.Stream, l.ShardID}]; (!ok || b.counter != l.counter || b.Owner != l.Owner || b.Checkpoint != l.Checkpoint) && !slices.Contains(owners, l.Owner) {
			owners = append(owners, l.Owner)
		}
	}
	return owners
}
