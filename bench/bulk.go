package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	osclient "github.com/opensearch-project/opensearch-go/v2"
	"github.com/opensearch-project/opensearch-go/v2/opensearchutil"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// bulkIndex is the index that documents are written to.
const bulkIndex = "searches"

// Bulk writes the same documents the usual way and by this module's sink.
type Bulk struct {
	url    string
	usual  *osclient.Client
	sink   *opensearch.Sink
	router *router.Router // to a projection by attribute into sink
	exact  *router.Router // to one by sequence
	ops    []document.Op
	flush  int // bytes of a request
}

// NewBulk returns a Bulk of n documents for the cluster at url, in requests of
// about flush bytes. Documents are of 1 KB, with an id and an external version.
func NewBulk(url string, n, flush int) (*Bulk, error) {
	b := &Bulk{url: url, flush: flush}
	var err error
	if b.usual, err = osclient.NewClient(osclient.Config{Addresses: []string{url}}); err != nil {
		return nil, err
	}
	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
	if err != nil {
		return nil, err
	}
	if b.sink, err = opensearch.New(client, opensearch.Options{MaxBytes: flush, MaxItems: n, InFlight: 1}); err != nil {
		return nil, err
	}
	for router, version := range map[**router.Router]projection.Version{
		&b.router: projection.ByAttribute("version"), &b.exact: projection.BySequence(),
	} {
		p, err := projection.New(b.sink.Write, projection.Options{
			Index: bulkIndex, ID: "{PK}|{SK}", Version: version, WriteUnchanged: true,
			Current: func(context.Context, *sluice.Record) (sluice.Item, error) {
				return sluice.Item{}, errors.New("all records are live")
			},
		})
		if err != nil {
			return nil, err
		}
		*router = Routes(p.Handle)
	}
	b.ops = Documents(bulkIndex, n)
	return b, nil
}

// Documents returns writes of n documents of 1 KB, with an id and an external
// version.
func Documents(index string, n int) []document.Op {
	ops := make([]document.Op, n)
	for i := range ops {
		ops[i] = document.Op{
			Action: document.Put, Index: index, ID: fmt.Sprintf("search|S%026d", i),
			Fence: document.Newer, Version: 1<<52 + int64(i), Body: bulkDocument(i),
		}
	}
	return ops
}

// bulkDocument returns a document of 1 KB.
func bulkDocument(i int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"searchId":"S%026d","status":"open","attempts":%d`, i, i%7)
	for n := 0; b.Len() < 1000; n++ {
		fmt.Fprintf(&b, `,"field%02d":"value %d of the search, as an application has it"`, n, n)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Usual writes all documents by opensearchutil.BulkIndexer with one worker and
// its defaults otherwise, and returns how many were acknowledged.
func (b *Bulk) Usual(ctx context.Context) (int, error) { return ByIndexer(ctx, b.indexer(), b.ops) }

func (b *Bulk) indexer() opensearchutil.BulkIndexerConfig {
	return opensearchutil.BulkIndexerConfig{Client: b.usual, NumWorkers: 1, FlushBytes: b.flush}
}

// ByIndexer writes documents by an opensearchutil.BulkIndexer, and returns how many
// were acknowledged.
func ByIndexer(ctx context.Context, o opensearchutil.BulkIndexerConfig, ops []document.Op) (int, error) {
	return index(ctx, o, func(add func(index, id string, version int64, body []byte) error) error {
		for i := range ops {
			if err := add(ops[i].Index, ops[i].ID, ops[i].Version, ops[i].Body); err != nil {
				return err
			}
		}
		return nil
	})
}

func index(ctx context.Context, o opensearchutil.BulkIndexerConfig, fill func(add func(index, id string, version int64, body []byte) error) error) (int, error) {
	var failed error
	o.OnError = func(_ context.Context, err error) { failed = err }
	indexer, err := opensearchutil.NewBulkIndexer(o)
	if err != nil {
		return 0, err
	}
	versionType := "external"
	if err := fill(func(index, id string, version int64, body []byte) error {
		return indexer.Add(ctx, opensearchutil.BulkIndexerItem{
			Index: index, Action: "index", DocumentID: id, Version: &version, VersionType: &versionType, Body: bytes.NewReader(body),
		})
	}); err != nil {
		return 0, err
	}
	if err := indexer.Close(ctx); err != nil {
		return 0, err
	}
	s := indexer.Stats()
	if failed == nil && s.NumFailed > 0 {
		failed = fmt.Errorf("%d failed", s.NumFailed)
	}
	return int(s.NumFlushed), failed
}

// Sink writes all documents by the sink and returns how many were acknowledged.
func (b *Bulk) Sink(ctx context.Context) (int, error) {
	if errs := b.sink.WriteAll(ctx, b.ops); errs != nil {
		return 0, errors.Join(errs...)
	}
	return len(b.ops), nil
}

// UsualEvent writes the new images of a Lambda event the usual way: as
// UsualProject makes documents, by BulkIndexer. It returns how many were
// acknowledged.
func (b *Bulk) UsualEvent(ctx context.Context, event []byte) (int, error) {
	return index(ctx, b.indexer(), func(add func(index, id string, version int64, body []byte) error) error {
		_, err := usualDocuments(event, func(doc map[string]any, out []byte) error {
			return add(bulkIndex, fmt.Sprint(doc["PK"], "|", doc["SK"]), int64(doc["version"].(float64)), out)
		})
		return err
	})
}

// Event does what UsualEvent does through decoder, flow, router, projection and
// sink, as a Lambda function or the poller does.
func (b *Bulk) Event(ctx context.Context, event []byte) (int, error) {
	return handle(ctx, b.router, event)
}

// EventBySequence is Event with documents versioned by sequence.
func (b *Bulk) EventBySequence(ctx context.Context, event []byte) (int, error) {
	return handle(ctx, b.exact, event)
}

func handle(ctx context.Context, r *router.Router, event []byte) (int, error) {
	page, err := sluice.DecodeEvent(event)
	if err != nil {
		return 0, err
	}
	f := flow.Open(ctx, r, flow.Options{})
	if _, err := f.Submit(ctx, page.Records...); err != nil {
		return 0, err
	}
	n, err := f.Close(ctx)
	return int(n), err
}

// AnswerBulk answers bulk requests as a cluster does that takes everything, with
// what filter_path leaves of its answers. It is made to cost little.
func AnswerBulk(w http.ResponseWriter, r *http.Request) {
	body := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(body)
	body.Reset()
	if _, err := body.ReadFrom(r.Body); err != nil {
		return
	}
	const revision = `,"_seq_no":12345,"_primary_term":1`
	rest := ""
	switch filter := r.URL.Query().Get("filter_path"); {
	case filter == "":
		rest = `,"_version":4503599627370497,"result":"created","_shards":{"total":2,"successful":1,"failed":0}` + revision
	case strings.Contains(filter, "_seq_no"):
		rest = revision
	}
	out := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(out)
	out.Reset()
	out.WriteString(`{"took":30,"errors":false,"items":[`)
	n := 0
	for lines := body.Bytes(); len(lines) > 0; n++ {
		action, after, _ := bytes.Cut(lines, []byte("\n"))
		_, lines, _ = bytes.Cut(after, []byte("\n"))
		_, id, ok := bytes.Cut(action, []byte(`"_id":"`))
		if !ok {
			http.Error(w, "an action without an id", http.StatusBadRequest)
			return
		}
		if n > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`{"index":{"_index":"` + bulkIndex + `","_id":"`)
		out.Write(id[:bytes.IndexByte(id, '"')])
		out.WriteString(`"` + rest + `,"status":201}}`)
	}
	out.WriteString("]}")
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	_, _ = io.Copy(w, out)
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}
