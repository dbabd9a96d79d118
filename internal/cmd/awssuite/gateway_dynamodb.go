package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/backoff"
)

func (g *gateway) serveDynamoDB(w http.ResponseWriter, r *http.Request) {
	q, ok := g.read(w, r, "dynamodb")
	if !ok {
		return
	}
	base := g.account.urls.dynamodb
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDBStreams_") {
		base = g.account.urls.streams
	}
	names := tableNames(q.body)
	if action := g.denied("dynamodb", q.op); action != "" {
		q.refuse("com.amazonaws.dynamodb.v20120810#AccessDeniedException", "policy.json does not allow "+action)
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, g.prefix) {
			continue
		}
		if q.op == "CreateTable" {
			q.refuse("com.amazonaws.dynamodb.v20120810#AccessDeniedException", name+" does not begin with "+g.prefix+": name it with localtest.Name")
		} else {
			q.refuse("com.amazonaws.dynamodb.v20120810#ResourceNotFoundException", "Requested resource not found: Table: "+name+" not found")
		}
		return
	}
	switch q.op {
	case "CreateTable":
		g.createTable(q, base, names)
	case "UpdateTable": // what has begun is seen through, also when the test gives up
		g.forward(g.ended, q, "dynamodb", base, func() { g.tableIsActive(names[0]) })
	case "DeleteTable":
		g.forward(g.ended, q, "dynamodb", base, func() { g.forget(resource{"table", names[0]}) })
	case "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems":
		defer g.written(names)
		g.forward(q.r.Context(), q, "dynamodb", base, nothing)
	case "Query", "Scan", "GetShardIterator":
		g.settle(q, names)
		fallthrough
	default:
		g.forward(q.r.Context(), q, "dynamodb", base, nothing)
	}
}

func (g *gateway) written(tables []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range tables {
		g.wrote[name] = time.Now()
	}
}

// settle waits before a read of an index, or of a stream from a place in its past,
// until the table's last write is old enough to be seen there.
func (g *gateway) settle(q request, tables []string) {
	var call struct{ IndexName, ShardIteratorType string }
	if g.account.settle == 0 || json.Unmarshal(q.body, &call) != nil || len(tables) == 0 {
		return
	}
	if call.IndexName == "" && (call.ShardIteratorType == "" || call.ShardIteratorType == "LATEST") {
		return
	}
	g.mu.Lock()
	left := time.Until(g.wrote[tables[0]].Add(g.account.settle))
	g.mu.Unlock()
	_ = backoff.Sleep(q.r.Context(), left) // the call that follows tells
}

// createTable answers once the table can be used. A table of that name that is
// being deleted goes first, since a test may create it again at once.
func (g *gateway) createTable(q request, base string, names []string) {
	if len(names) == 1 {
		name := names[0]
		table := resource{"table", name}
		if g.known(table) {
			g.tableIsGone(name)
		}
		g.remember(table)
		q.body = withTags(q.body, "Tags", []map[string]string{{"Key": tagKey, "Value": g.run}})
	}
	g.forward(g.ended, q, "dynamodb", base, func() { g.tableIsActive(names[0]) })
}

func (g *gateway) known(r resource) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.asked[r]
	return known
}

// tableIsActive waits for the table and its indexes. An error is the test's to
// find.
func (g *gateway) tableIsActive(name string) {
	g.account.wait(g.ended, func() (bool, error) { //nolint:errcheck // see above
		out, err := g.account.tables.DescribeTable(g.ended, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			return false, err
		}
		for _, index := range out.Table.GlobalSecondaryIndexes {
			if index.IndexStatus != "" && index.IndexStatus != types.IndexStatusActive {
				return false, nil
			}
		}
		return out.Table.TableStatus == types.TableStatusActive, nil
	})
}

// tableIsGone waits while the table is being deleted.
func (g *gateway) tableIsGone(name string) {
	g.account.wait(g.ended, func() (bool, error) { //nolint:errcheck // the following call reports the mistake
		status, err := g.account.tableStatus(g.ended, name)
		return status != types.TableStatusDeleting, err
	})
}

// tableStatus returns "" for a table that is not there.
func (a *account) tableStatus(ctx context.Context, name string) (types.TableStatus, error) {
	out, err := a.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	switch {
	case errors.As(err, new(*types.ResourceNotFoundException)):
		return "", nil
	case err != nil:
		return "", err
	}
	return out.Table.TableStatus, nil
}

// tableNames returns the tables that a request to DynamoDB or its streams names,
// by name or ARN.
func tableNames(body []byte) []string {
	var call any
	if json.Unmarshal(body, &call) != nil {
		return nil // the service reports the mistake
	}
	var names []string
	add := func(name string) {
		if _, rest, ok := strings.Cut(name, ":table/"); ok {
			name, _, _ = strings.Cut(rest, "/")
		}
		names = append(names, name)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for key, e := range v {
				text, isText := e.(string)
				requests, isMap := e.(map[string]any)
				switch {
				case isText && (key == "TableName" || key == "StreamArn" || key == "ResourceArn" || key == "TableArn"):
					add(text)
				case isMap && key == "RequestItems":
					for name := range requests {
						add(name)
					}
				default:
					walk(e)
				}
			}
		}
	}
	walk(call)
	return names
}
