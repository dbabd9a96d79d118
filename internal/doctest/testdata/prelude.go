// Package page holds the names that fragments of documents take for granted.
package page

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sinks/sqs"
)

var (
	ctx    context.Context
	err    error
	t      *testing.T
	cfg    aws.Config
	s      run.Setup
	r      *router.Router
	rec    *sluice.Record
	key    item.Item
	queue  *sqs.Queue
	store  *dynamodb.Store
	client *opensearch.Client
	sink   *opensearch.Sink
	p      *projection.Projection
	box    *deadletter.Box
)
