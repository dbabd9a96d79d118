package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/views"
	"github.com/sluicehq/sluice/sources/poller"
)

// tableName is the table of a name or of a stream's ARN; "" of a wrong ARN.
func tableName(name string) string {
	s, _ := stream(name)
	return s.TableName()
}

// stream is what tells the poller which stream to read.
func stream(name string) (poller.Stream, error) {
	if !strings.HasPrefix(name, "arn:") {
		return poller.Stream{Table: name}, nil
	}
	s := poller.Stream{ARN: name}
	if s.TableName() == "" {
		return s, usage("%q is not the ARN of a stream: want arn:aws:dynamodb:REGION:ACCOUNT:table/TABLE/stream/LABEL", name)
	}
	return s, nil
}

// describe asks for a table; its error says what to do.
func describeTable(ctx context.Context, cfg aws.Config, table string) (*types.TableDescription, error) {
	out, err := dynamodb.NewFromConfig(cfg).DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		return nil, fmt.Errorf("table %q: %w", table, awsclient.NoTable(cfg, err))
	}
	if err != nil {
		return nil, fmt.Errorf("table %s: dynamodb:DescribeTable: %w", table, err)
	}
	return out.Table, nil
}

// checkStream says what keeps the routes from working on a table's stream.
func checkStream(ctx context.Context, cfg aws.Config, name string, routes []*sluice.Route) error {
	table := tableName(name)
	d, err := describeTable(ctx, cfg, table)
	if err != nil {
		return err
	}
	if d.StreamSpecification == nil || !aws.ToBool(d.StreamSpecification.StreamEnabled) {
		return fmt.Errorf("table %s has no stream: enable one with the view NEW_AND_OLD_IMAGES", table)
	}
	view, err := views.Parse(string(d.StreamSpecification.StreamViewType))
	if err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	for _, r := range routes {
		if !view.Has(r.Needs) {
			return fmt.Errorf("table %s: its stream has the view %v, but route %q needs %v", table, view, r.Name, r.Needs)
		}
	}
	return nil
}

// keyNames are the names of a table's key attributes, the partition key first.
func keyNames(d *types.TableDescription) []string {
	return mapped(d.KeySchema, func(k types.KeySchemaElement) string { return aws.ToString(k.AttributeName) })
}
