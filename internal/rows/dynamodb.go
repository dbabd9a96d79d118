package rows

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/awserror"
)

// The names of the attributes that every row has.
const (
	PartitionKey = "partition"
	SortKey      = "sort"
	TokenName    = "token"
)

const (
	attempts   = 4
	maxBackoff = 500 * time.Millisecond
	// perAttempt bounds one request, so that a connection that died silently
	// leaves time for the next.
	perAttempt = 2 * time.Second
	conns      = 64
)

// DynamoDB is a table of the service.
type DynamoDB struct {
	db   *dynamodb.Client
	name string
}

// NewDynamoDB returns the table of that name. It makes no call.
func NewDynamoDB(cfg aws.Config, name string) *DynamoDB {
	if b, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok || cfg.HTTPClient == nil {
		if b == nil {
			b = awshttp.NewBuildableClient()
		}
		cfg = cfg.Copy()
		cfg.HTTPClient = b.WithTimeout(perAttempt)
	}
	cfg = awsclient.Tuned(cfg, conns)
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff, o.RateLimiter = attempts, maxBackoff, ratelimit.None
		})
	}
	return &DynamoDB{db: dynamodb.NewFromConfig(cfg), name: name}
}

// Get implements [Table].
func (d *DynamoDB) Get(ctx context.Context, k Key) (Row, error) {
	out, err := d.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.name, Key: keyOf(k), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return Row{}, d.explain("GetItem", err)
	}
	return rowOf(k, out.Item), nil
}

// Write implements [Table].
func (d *DynamoDB) Write(ctx context.Context, seen Row, set map[string]types.AttributeValue) (Row, error) {
	now := seen.with(set)
	in := &dynamodb.UpdateItemInput{
		TableName: &d.name, Key: keyOf(seen.Key),
		ExpressionAttributeNames:            map[string]string{"#token": TokenName},
		ExpressionAttributeValues:           map[string]types.AttributeValue{":token": text(now.Token)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	in.ConditionExpression = asSeen(seen, in.ExpressionAttributeValues)
	update := []string{"#token = :token"}
	for i, name := range slices.Sorted(maps.Keys(set)) {
		in.ExpressionAttributeNames[fmt.Sprint("#", i)] = name
		in.ExpressionAttributeValues[fmt.Sprint(":", i)] = set[name]
		update = append(update, fmt.Sprintf("#%d = :%d", i, i))
	}
	in.UpdateExpression = aws.String("SET " + strings.Join(update, ", "))
	_, err := d.db.UpdateItem(ctx, in)
	if err == nil {
		return now, nil
	}
	refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return Row{}, d.explain("UpdateItem", err)
	}
	have := rowOf(seen.Key, refused.Item)
	if have.Token == now.Token { // a repeated request, whose first response was lost
		return now, nil
	}
	return Row{}, &ChangedError{have}
}

// Delete implements [Table].
func (d *DynamoDB) Delete(ctx context.Context, seen Row) error {
	if !seen.Exists() {
		return nil
	}
	in := &dynamodb.DeleteItemInput{
		TableName: &d.name, Key: keyOf(seen.Key),
		ExpressionAttributeNames:            map[string]string{"#token": TokenName},
		ExpressionAttributeValues:           map[string]types.AttributeValue{},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	in.ConditionExpression = asSeen(seen, in.ExpressionAttributeValues)
	_, err := d.db.DeleteItem(ctx, in)
	refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return d.explain("DeleteItem", err)
	}
	if have := rowOf(seen.Key, refused.Item); have.Exists() {
		return &ChangedError{have}
	}
	return nil
}

// List implements [Table].
func (d *DynamoDB) List(ctx context.Context, partition, after string, limit int) iter.Seq2[Row, error] {
	in := &dynamodb.QueryInput{
		TableName: &d.name, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#p = :p"),
		ExpressionAttributeNames:  map[string]string{"#p": PartitionKey},
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": text(partition)},
	}
	if limit > 0 {
		in.Limit = aws.Int32(int32(limit))
	}
	if after != "" {
		in.KeyConditionExpression = aws.String("#p = :p AND #s > :s")
		in.ExpressionAttributeNames["#s"] = SortKey
		in.ExpressionAttributeValues[":s"] = text(after)
	}
	return func(yield func(Row, error) bool) {
		for pages := dynamodb.NewQueryPaginator(d.db, in); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Row{}, d.explain("Query", err))
				return
			}
			for _, item := range page.Items {
				if !yield(rowOf(Key{partition, textOf(item[SortKey])}, item), nil) {
					return
				}
			}
		}
	}
}

// explain adds to an error of the SDK the call, the table and advice.
func (d *DynamoDB) explain(call string, err error) error {
	if err == nil {
		return nil
	}
	hint := awserror.Hint(err, "dynamodb:"+call, "table", "name or the region")
	if hint != "" {
		call += ": " + hint
	}
	return fmt.Errorf("state table %s: %s: %w", d.name, call, err)
}

// asSeen is the condition that a row is as it was seen.
func asSeen(seen Row, values map[string]types.AttributeValue) *string {
	if !seen.Exists() {
		return aws.String("attribute_not_exists(#token)")
	}
	values[":seen"] = text(seen.Token)
	return aws.String("#token = :seen")
}

func keyOf(k Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{PartitionKey: text(k.Partition), SortKey: text(k.Sort)}
}

func rowOf(k Key, item map[string]types.AttributeValue) Row {
	r := Row{Key: k, Token: textOf(item[TokenName]), Attributes: item}
	delete(item, PartitionKey)
	delete(item, SortKey)
	delete(item, TokenName)
	return r
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
