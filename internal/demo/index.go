package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
)

const (
	refresh   = "200ms" // OpenSearch's refresh interval; its default is a second
	lookEvery = 20 * time.Millisecond
)

// byProjection writes an item, changes it and deletes it, and each time searches
// for its words until the index is as the table.
func (d *demo) byProjection(ctx context.Context) error {
	d.title("6. Projection: an item is written, found by search, changed, deleted")
	table := d.table + "-products"
	if err := d.world.createProducts(ctx, table); err != nil {
		return err
	}
	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{d.world.stack.OpenSearch}})
	if err != nil {
		return err
	}
	p := &products{demo: d, client: client, table: table, index: table}
	if p.store, err = dynamodb.New(d.world.cfg, dynamodb.Options{}); err != nil {
		return err
	}
	settings := map[string]any{
		"settings": map[string]any{"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": refresh},
		"mappings": map[string]any{"properties": map[string]any{"title": map[string]string{"type": "text"}, "id": map[string]string{"type": "keyword"}}},
	}
	if err := client.Call(ctx, http.MethodPut, "/"+p.index, settings, nil); err != nil {
		return err
	}
	defer client.Call(context.WithoutCancel(ctx), http.MethodDelete, "/"+p.index, nil, nil) //nolint:errcheck // what counts has been seen
	d.row("index", "%s at %s, searches see it after %s", p.index, d.world.stack.OpenSearch, refresh)
	ctx, end, err := p.project(ctx)
	if err != nil {
		return err
	}
	defer end()
	fmt.Fprintln(d.out)
	return p.live(ctx)
}

// createProducts makes a table whose items have an id.
func (w *world) createProducts(ctx context.Context, table string) error {
	_, err := w.db.CreateTable(ctx, &sdk.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		return fmt.Errorf("create table %s: %w", table, err)
	}
	return nil
}

// products is a table and the index of its items.
type products struct {
	*demo
	store        *dynamodb.Store
	client       *opensearch.Client
	table, index string
}

// project keeps the documents until end is called: all that an application has
// to say. The context is that of inBackground.
func (p *products) project(ctx context.Context) (_ context.Context, end func(), err error) {
	sink, err := opensearch.New(p.client, opensearch.Options{})
	if err != nil {
		return ctx, nil, err
	}
	documents, err := projection.New(sink.Write, projection.Options{
		Index: p.index, ID: "{id}", Version: projection.ByAttribute("rev"), Exclude: []string{"entityType"},
	})
	if err != nil {
		return ctx, nil, err
	}
	r := router.New()
	r.Handle("product#*", documents.Handle, router.NeedsBoth())
	source, err := poller.New(p.world.cfg, r, poller.Options{
		Streams: []poller.Stream{{Table: p.table}}, Store: state.NewMemory(), Start: poller.TrimHorizon, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return ctx, nil, err
	}
	ctx, end = inBackground(ctx, source.Run)
	return ctx, end, nil
}

// live is the life of an item, from its first version to its end.
func (p *products) live(ctx context.Context) error {
	const id = "lamp-1"
	key := item.Of(item.String("id", id))
	lamp := func(rev, title string) sluice.Item {
		return key.With(item.String("entityType", "product"), item.String("title", title), item.Number("rev", rev))
	}
	put := func(it sluice.Item) func() error {
		return func() error { return p.store.Put(ctx, p.table, it) }
	}
	for _, step := range []struct {
		event string
		do    func() error
		word  string // that is searched for
		want  hit    // that is to be found; zero is none
	}{
		{"INSERT", put(lamp("1", "a lamp of brass")), "brass", hit{1, "a lamp of brass"}},
		{"MODIFY", put(lamp("2", "a lamp of copper")), "copper", hit{2, "a lamp of copper"}},
		{"", nil, "brass", hit{}}, // what it was before is no longer found
		{"REMOVE", func() error { return p.store.Delete(ctx, p.table, key) }, "copper", hit{}},
	} {
		began := time.Now()
		if step.do != nil {
			p.change(step.event, "product", id)
			if err := step.do(); err != nil {
				return err
			}
		}
		if err := p.search(ctx, step.word, step.want, began, step.do != nil); err != nil {
			return err
		}
	}
	return nil
}

// search searches until it finds the wanted result. Without wait the first result
// must be as wanted.
func (p *products) search(ctx context.Context, word string, want hit, since time.Time, wait bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not found within %v", patience))
	defer cancel()
	for {
		found, document, err := p.find(ctx, word)
		switch {
		case err != nil:
			return errors.Join(err, context.Cause(ctx))
		case found == want && want != (hit{}):
			p.effect("search", "%s finds version %d, %s after the write", green(fmt.Sprintf("%q", word)), found.version, bold(ms(time.Since(since))))
			p.effect("", "%s", faint(document))
			return nil
		case found == want && wait:
			p.effect("search", "%s finds nothing, %s after the write", green(fmt.Sprintf("%q", word)), bold(ms(time.Since(since))))
			return nil
		case found == want:
			p.effect("search", "%s finds nothing any more", green(fmt.Sprintf("%q", word)))
			return nil
		case !wait:
			return fmt.Errorf("the search for %q finds %+v, want %+v", word, found, want)
		}
		if err := backoff.Sleep(ctx, lookEvery); err != nil {
			return fmt.Errorf("the search for %q finds %+v, want %+v: %w", word, found, want, err)
		}
	}
}

// hit is a document that was found.
type hit struct {
	version int64
	title   string
}

// find returns the document whose title has the word, if any has.
func (p *products) find(ctx context.Context, word string) (h hit, document string, err error) {
	var out struct {
		Hits struct {
			Hits []struct {
				Version int64           `json:"_version"`
				Source  json.RawMessage `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	query := map[string]any{"version": true, "query": map[string]any{"match": map[string]string{"title": word}}}
	if err := p.client.Call(ctx, http.MethodPost, "/"+p.index+"/_search", query, &out); err != nil {
		return h, "", err
	}
	switch hits := out.Hits.Hits; len(hits) {
	case 0:
		return h, "", nil
	case 1:
		var source struct{ Title string }
		err := json.Unmarshal(hits[0].Source, &source)
		return hit{hits[0].Version, source.Title}, string(hits[0].Source), err
	}
	return h, "", errors.New("the search finds more than one document")
}
