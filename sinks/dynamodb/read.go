package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
)

// Get reads the item with the key, consistently; a missing one is the absent Item.
func (s *Store) Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error) {
	in := &dynamodb.GetItemInput{TableName: &table, Key: sdkitem.Map(key), ConsistentRead: aws.Bool(true)}
	out, err := read(ctx, s, s.opt.Attempts, "GetItem", table, s.db.GetItem, in)
	if err != nil {
		return sluice.Item{}, err
	}
	return s.item(table, out.Item)
}

// Query reads one page of items; [dynamo.All] reads all pages. A query of the
// table is consistent. An invalid query is a sluice.Permanent error.
func (s *Store) Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error) {
	in, err := queryInput(q)
	if err != nil {
		return dynamo.Page{}, refuse(q.Table, fmt.Errorf("Query: %w", err))
	}
	out, err := read(ctx, s, s.opt.Attempts, "Query", q.Table, s.db.Query, in)
	if err != nil {
		return dynamo.Page{}, err
	}
	page := dynamo.Page{Items: make([]sluice.Item, len(out.Items))}
	for i := range out.Items {
		if page.Items[i], err = s.item(q.Table, out.Items[i]); err != nil {
			return dynamo.Page{}, err
		}
	}
	if len(out.LastEvaluatedKey) > 0 {
		if page.Next, err = s.item(q.Table, out.LastEvaluatedKey); err != nil {
			return dynamo.Page{}, err
		}
	}
	return page, nil
}

func (s *Store) item(table string, m map[string]types.AttributeValue) (sluice.Item, error) {
	it, err := sdkitem.FromMap(m)
	if err != nil {
		return sluice.Item{}, &tableError{table, fmt.Errorf("an item that was read %s: %w", s.where, err)}
	}
	return it, nil
}

func queryInput(q dynamo.Query) (*dynamodb.QueryInput, error) {
	e := expression{names: map[string]string{}, values: map[string]types.AttributeValue{}}
	condition, err := e.compare("#p", "=", ":p", q.Partition)
	if err != nil {
		return nil, fmt.Errorf("partition key: %w", err)
	}
	if q.Sort.Op != "" {
		narrowed, err := e.sort(q.Sort)
		if err != nil {
			return nil, fmt.Errorf("sort key: %w", err)
		}
		condition += " AND " + narrowed
	}
	if q.Limit < 0 || int64(q.Limit) > 1<<31-1 {
		return nil, fmt.Errorf("a limit of %d items; want 1 or more, or 0 for as many as the service puts into a page", q.Limit)
	}
	in := &dynamodb.QueryInput{
		TableName:                 &q.Table,
		KeyConditionExpression:    &condition,
		ExpressionAttributeNames:  e.names,
		ExpressionAttributeValues: e.values,
		ScanIndexForward:          aws.Bool(!q.Descending),
		ConsistentRead:            aws.Bool(q.Index == ""),
		ExclusiveStartKey:         sdkitem.Map(q.After),
	}
	if q.Index != "" {
		in.IndexName = &q.Index
	}
	if q.Limit > 0 {
		in.Limit = aws.Int32(int32(q.Limit))
	}
	if q.Whole {
		in.Select = types.SelectAllAttributes
	}
	if projection := e.project(q.Attributes); projection != "" {
		in.ProjectionExpression = &projection
	}
	return in, nil
}

// expression collects the placeholders of expressions: names may be reserved
// words, and may contain dots.
type expression struct {
	names  map[string]string
	values map[string]types.AttributeValue
}

func (e *expression) compare(name, op, value string, a item.Attribute) (string, error) {
	if err := e.attribute(name, value, a); err != nil {
		return "", err
	}
	return name + " " + op + " " + value, nil
}

func (e *expression) sort(s dynamo.Sort) (string, error) {
	switch s.Op {
	case "<", "<=", "=", ">=", ">":
		return e.compare("#s", s.Op, ":s", s.Key)
	case "begins_with":
		return "begins_with(#s, :s)", e.attribute("#s", ":s", s.Key)
	case "BETWEEN":
		if err := e.attribute("#s", ":s", s.Key); err != nil {
			return "", err
		}
		first := e.names["#s"]
		if err := e.attribute("#s", ":t", s.Second); err != nil {
			return "", err
		}
		if second := e.names["#s"]; second != first {
			return "", fmt.Errorf("BETWEEN of two attributes, %q and %q", first, second)
		}
		return "#s BETWEEN :s AND :t", nil
	}
	return "", fmt.Errorf("operator %q; want begins_with, <, <=, =, >=, > or BETWEEN", s.Op)
}

// attribute adds a's name and value under placeholders.
func (e *expression) attribute(name, value string, a item.Attribute) error {
	it, err := itemOf(a)
	for n, v := range it.All() {
		if n == "" {
			return errors.New("it has no name")
		}
		e.names[name], e.values[value] = n, sdkitem.Value(v)
	}
	return err
}

// itemOf is item.Of with an error: a number in a query may come from outside.
func itemOf(a item.Attribute) (it item.Item, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	if a == (item.Attribute{}) {
		return it, errors.New("none is given")
	}
	return item.Of(a), nil
}

// project returns a projection of attributes; "" is all.
func (e *expression) project(attributes []string) string {
	var list []string
	for i, a := range attributes {
		if slices.Contains(attributes[:i], a) {
			continue // DynamoDB refuses duplicates
		}
		placeholder := fmt.Sprintf("#a%d", i)
		e.names[placeholder] = a
		list = append(list, placeholder)
	}
	return strings.Join(list, ", ")
}
