// Package bench runs the usual ways of handling stream records beside this
// module's, over the same bytes in one process. Its benchmarks measure each
// way alone; command ratios compares them.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/benchdata"
	"github.com/sluicehq/sluice/internal/streamsapi"
	"github.com/sluicehq/sluice/router"
)

// Routes is a router in which every MODIFY has a route, all to h.
func Routes(h sluice.Handler, opts ...router.Option) *router.Router {
	r := router.New(opts...)
	r.Handle("search#INSERT", h, router.Name("next"))
	r.Handle("search#MODIFY", h, router.Name("changed"))
	r.Handle("searchAttempt#MODIFY", h, router.Name("attempted"))
	r.Handle("contact#MODIFY contact#REMOVE", h, router.Name("contact"))
	r.Handle("contactMethod#MODIFY incident#MODIFY", h, router.Name("other"))
	return r
}

// usualSwitch is what a function without a router does with a record.
func usualSwitch(entityType, eventName string) int {
	switch entityType + "#" + eventName {
	case "search#INSERT", "search#MODIFY", "searchAttempt#MODIFY", "contact#MODIFY", "contact#REMOVE", "contactMethod#MODIFY", "incident#MODIFY":
		return 1
	}
	return 0
}

// UsualRoute decodes a Lambda event with aws-lambda-go's types and returns how
// many of its records go somewhere.
func UsualRoute(event []byte) (int, error) {
	var e events.DynamoDBEvent
	if err := json.Unmarshal(event, &e); err != nil {
		return 0, err
	}
	n := 0
	for i := range e.Records {
		r := &e.Records[i]
		if v, ok := r.Change.NewImage["entityType"]; ok {
			n += usualSwitch(v.String(), r.EventName)
		}
	}
	return n, nil
}

// UsualProject is UsualRoute that also makes a document of each new image: to
// the SDK's types, into a map, to JSON.
func UsualProject(event []byte, emit func([]byte)) (int, error) {
	return usualDocuments(event, func(_ map[string]any, out []byte) error {
		emit(out)
		return nil
	})
}

func usualDocuments(event []byte, emit func(doc map[string]any, out []byte) error) (int, error) {
	var e events.DynamoDBEvent
	if err := json.Unmarshal(event, &e); err != nil {
		return 0, err
	}
	n := 0
	for i := range e.Records {
		r := &e.Records[i]
		v, ok := r.Change.NewImage["entityType"]
		if !ok || usualSwitch(v.String(), r.EventName) == 0 {
			continue
		}
		var doc map[string]any
		if err := attributevalue.UnmarshalMap(convertMap(r.Change.NewImage), &doc); err != nil {
			return 0, err
		}
		out, err := json.Marshal(doc)
		if err != nil {
			return 0, err
		}
		if err := emit(doc, out); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// convertMap is the conversion that every user of both packages writes.
func convertMap(m map[string]events.DynamoDBAttributeValue) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(m))
	for k, v := range m {
		out[k] = convert(v)
	}
	return out
}

func convert(v events.DynamoDBAttributeValue) types.AttributeValue {
	switch v.DataType() {
	case events.DataTypeString:
		return &types.AttributeValueMemberS{Value: v.String()}
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}
	case events.DataTypeBinary:
		return &types.AttributeValueMemberB{Value: v.Binary()}
	case events.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}
	case events.DataTypeMap:
		return &types.AttributeValueMemberM{Value: convertMap(v.Map())}
	case events.DataTypeList:
		l := make([]types.AttributeValue, 0, len(v.List()))
		for _, e := range v.List() {
			l = append(l, convert(e))
		}
		return &types.AttributeValueMemberL{Value: l}
	case events.DataTypeStringSet:
		return &types.AttributeValueMemberSS{Value: v.StringSet()}
	case events.DataTypeNumberSet:
		return &types.AttributeValueMemberNS{Value: v.NumberSet()}
	case events.DataTypeBinarySet:
		return &types.AttributeValueMemberBS{Value: v.BinarySet()}
	}
	return &types.AttributeValueMemberNULL{Value: true}
}

// Way is this module's: a router, and memory that calls share.
type Way struct {
	Router *router.Router
	routes []*sluice.Route
	doc    []byte
}

// NewWay returns a Way whose routes do nothing.
func NewWay(opts ...router.Option) *Way {
	return &Way{Router: Routes(func(context.Context, *sluice.Record) error { return nil }, opts...)}
}

// Route does what UsualRoute does.
func (w *Way) Route(event []byte) (int, error) { return w.Project(event, nil) }

// Project does what UsualProject does. A nil emit makes no documents.
func (w *Way) Project(event []byte, emit func([]byte)) (int, error) {
	page, err := sluice.DecodeEvent(event)
	if err != nil {
		return 0, err
	}
	return w.match(page, emit)
}

func (w *Way) match(page sluice.Page, emit func([]byte)) (n int, err error) {
	for i := range page.Records {
		rec := &page.Records[i]
		if rec.Err() != nil {
			return 0, rec.Err()
		}
		if w.routes, err = w.Router.Match(w.routes[:0], rec); err != nil {
			return 0, err
		}
		n += len(w.routes)
		if emit != nil && len(w.routes) > 0 {
			w.doc = rec.New.AppendJSON(w.doc[:0])
			emit(w.doc)
		}
	}
	return n, nil
}

// Stream is a server on a loopback address that answers every GetRecords call
// with one body, and both ways' clients.
type Stream struct {
	server *httptest.Server
	sdk    *dynamodbstreams.Client
	ours   *streamsapi.Client
}

// NewStream serves body until Close.
func NewStream(body []byte) *Stream {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}))
	cfg := aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: &server.URL,
		Credentials:  credentials.NewStaticCredentialsProvider("id", "secret", ""),
		// Else calls that the SDK repeats would count against the usual way: so
		// near a server is not usual.
		HTTPClient: awsclient.WholeRequests(awshttp.NewBuildableClient()),
	}
	return &Stream{server: server, sdk: dynamodbstreams.NewFromConfig(cfg), ours: streamsapi.New(cfg)}
}

// Close stops the server.
func (s *Stream) Close() { s.server.Close() }

// UsualRoute reads one page with the SDK's client and returns how many of its
// records go somewhere.
func (s *Stream) UsualRoute(ctx context.Context) (int, error) {
	out, err := s.sdk.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String("iterator")})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, r := range out.Records {
		if v, ok := r.Dynamodb.NewImage["entityType"].(*streamtypes.AttributeValueMemberS); ok {
			n += usualSwitch(v.Value, string(r.EventName))
		}
	}
	return n, nil
}

// Route does what UsualRoute does, the way the poller does it.
func (s *Stream) Route(ctx context.Context, w *Way) (int, error) {
	body, err := s.ours.GetRecords(ctx, "iterator", 0)
	if err != nil {
		return 0, err
	}
	page, err := sluice.DecodeGetRecords(body, sluice.Source{StreamARN: benchdata.ARN, ShardID: "shard"})
	if err != nil {
		return 0, err
	}
	if len(page.Records) == 0 {
		return 0, fmt.Errorf("no records in a body of %d bytes", len(body))
	}
	return w.match(page, nil)
}
