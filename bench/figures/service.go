//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/benchdata"
	"github.com/sluicehq/sluice/internal/parallel"
)

// service writes to DynamoDB Local by plain HTTP, so that writing a backlog costs
// this side little.
type service struct{ url string }

// createTable makes a table, without a stream.
func (s *service) createTable(ctx context.Context, table string) error {
	return local.Call(ctx, s.url, "CreateTable", fmt.Appendf(nil, `{"TableName":%q,"BillingMode":"PAY_PER_REQUEST",`+
		`"AttributeDefinitions":[{"AttributeName":"PK","AttributeType":"S"},{"AttributeName":"SK","AttributeType":"S"}],`+
		`"KeySchema":[{"AttributeName":"PK","KeyType":"HASH"},{"AttributeName":"SK","KeyType":"RANGE"}]}`, table), nil)
}

// enableStream gives a table a stream of both images and returns its ARN.
func (s *service) enableStream(ctx context.Context, table string) (string, error) {
	var out struct {
		TableDescription struct{ LatestStreamArn string }
	}
	err := local.Call(ctx, s.url, "UpdateTable", fmt.Appendf(nil, `{"TableName":%q,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`, table), &out)
	if err == nil && out.TableDescription.LatestStreamArn == "" {
		err = errors.New("UpdateTable: no LatestStreamArn in the answer")
	}
	return out.TableDescription.LatestStreamArn, err
}

// put writes an item that says when.
func (s *service) put(ctx context.Context, table string, i int) error {
	return local.Call(ctx, s.url, "PutItem", fmt.Appendf(nil, `{"TableName":%q,"Item":{"PK":{"S":"%d"},"SK":{"S":"search"},"entityType":{"S":"search"},%q:{"N":"%d"}}}`,
		table, i, tell.Sent, time.Now().UnixNano()), nil)
}

const (
	writers  = 4
	perWrite = 25   // items in a BatchWriteItem call
	keys     = 2000 // in the backlog's table: a multiple of the two above
)

// fill writes every item of the backlog's table in versions from up to before
// to, each item's in order.
func (s *service) fill(ctx context.Context, table string, from, to int) error {
	errs := make([]error, writers)
	parallel.Do(writers, writers, func(w int) {
		for version := from; version < to && errs[w] == nil; version++ {
			for i := w * perWrite; i < keys && errs[w] == nil; i += writers * perWrite {
				errs[w] = s.batch(ctx, table, i, version)
			}
		}
	})
	return errors.Join(errs...)
}

func (s *service) batch(ctx context.Context, table string, first, version int) error {
	request := fmt.Appendf(nil, `{"RequestItems":{%q:[`, table)
	for i := first; i < first+perWrite; i++ {
		if i > first {
			request = append(request, ',')
		}
		request = append(request, `{"PutRequest":{"Item":`...)
		request = append(append(request, benchdata.Item(i, version)...), `}}`...)
	}
	var out struct{ UnprocessedItems map[string]any }
	if err := local.Call(ctx, s.url, "BatchWriteItem", append(request, `]}}`...), &out); err != nil {
		return err
	}
	if len(out.UnprocessedItems) > 0 {
		return errors.New("BatchWriteItem: not all items were written")
	}
	return nil
}
