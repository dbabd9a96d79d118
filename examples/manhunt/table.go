package manhunt

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sdkitem"
)

// Table is the table of contacts and searches. It is safe for concurrent use.
type Table struct {
	db   *dynamodb.Client
	name string
}

// NewTable returns the table of that name.
func NewTable(cfg aws.Config, name string) *Table {
	return &Table{db: dynamodb.NewFromConfig(cfg), name: name}
}

// SearchItem implements [Store].
func (t *Table) SearchItem(ctx context.Context, searchID string) (sluice.Item, error) {
	return t.get(ctx, searchID, "search", "search")
}

// ContactItems implements [Store].
func (t *Table) ContactItems(ctx context.Context, contactID string) ([]sluice.Item, error) {
	return t.query(ctx, query{partition: contactID})
}

// FailSearch implements [Store].
func (t *Table) FailSearch(ctx context.Context, searchID, contactID, resolution string) error {
	_, err := t.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                aws.String(t.name),
		Key:                      key(searchID, "search"),
		ConditionExpression:      aws.String("#status = :active"),
		UpdateExpression:         aws.String("SET #status = :failed, #resolution = :resolution, GSI2PK = :index"),
		ExpressionAttributeNames: map[string]string{"#status": "status", "#resolution": "resolution"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":active":     str("active"),
			":failed":     str("failed"),
			":resolution": str(resolution),
			":index":      str("failed#" + contactID),
		},
	})
	var over *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &over) {
		return fmt.Errorf("failing search %s in table %s: %w", searchID, t.name, err)
	}
	return nil
}

// Put writes an item.
func (t *Table) Put(ctx context.Context, it sluice.Item) error {
	_, err := t.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(t.name), Item: sdkitem.Map(it)})
	if err != nil {
		return fmt.Errorf("writing %s %s into table %s: %w", attribute(it, "entityType"), attribute(it, "PK"), t.name, err)
	}
	return nil
}

// get reads one item, consistently. An item of another type is not found.
func (t *Table) get(ctx context.Context, pk, sk, entityType string) (sluice.Item, error) {
	out, err := t.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(t.name),
		Key:            key(pk, sk),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return sluice.Item{}, fmt.Errorf("reading %s %s from table %s: %w", entityType, pk, t.name, err)
	}
	it, err := sdkitem.FromMap(out.Item)
	if err != nil {
		return sluice.Item{}, fmt.Errorf("%s %s of table %s: %w", entityType, pk, t.name, err)
	}
	if attribute(it, "entityType") != entityType {
		return sluice.Item{}, nil
	}
	return it, nil
}

// query is one partition of the table or of an index, in the order of its sort
// keys.
type query struct {
	index     string // "" is the table itself, which is read consistently
	partition string
	operator  string // "<" or ">" narrow the sort key; "" does not
	than      string
}

// query reads all pages.
func (t *Table) query(ctx context.Context, q query) ([]sluice.Item, error) {
	in := &dynamodb.QueryInput{
		TableName:                 aws.String(t.name),
		KeyConditionExpression:    aws.String(q.index + "PK = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": str(q.partition)},
	}
	if q.index == "" {
		in.ConsistentRead = aws.Bool(true)
	} else {
		in.IndexName = aws.String(q.index)
	}
	if q.operator != "" {
		*in.KeyConditionExpression += " AND " + q.index + "SK " + q.operator + " :sk"
		in.ExpressionAttributeValues[":sk"] = str(q.than)
	}
	var items []sluice.Item
	for pages := dynamodb.NewQueryPaginator(t.db, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("querying %s %s of table %s: %w", q.index+"PK", q.partition, t.name, err)
		}
		for _, m := range page.Items {
			it, err := sdkitem.FromMap(m)
			if err != nil {
				return nil, fmt.Errorf("table %s: %w", t.name, err)
			}
			items = append(items, it)
		}
	}
	return items, nil
}

func key(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"PK": str(pk), "SK": str(sk)}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
