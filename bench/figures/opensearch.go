//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	osclient "github.com/opensearch-project/opensearch-go/v2"
	"github.com/opensearch-project/opensearch-go/v2/opensearchutil"

	sluicebench "github.com/sluicehq/sluice/bench"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

const documentCount = 50_000 // written in each turn

// openSearchFigures writes the same documents to an OpenSearch by the sink and
// by BulkIndexer, each with its defaults, into an index made for each turn. The
// client's CPU time is this process's; the server is another one.
func (b *bench) openSearchFigures(ctx context.Context) error {
	run, err := os.MkdirTemp(b.dir, "opensearch-")
	if err != nil {
		return err
	}
	server, err := localstack.StartOpenSearch(ctx, localstack.Options{Log: os.Stderr}, run)
	if err != nil {
		return err
	}
	defer server.Kill()
	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{server.URL}})
	if err != nil {
		return err
	}
	sink, err := opensearch.New(client, opensearch.Options{})
	if err != nil {
		return err
	}
	usual, err := osclient.NewClient(osclient.Config{Addresses: []string{server.URL}})
	if err != nil {
		return err
	}
	turn := 0
	write := func(by func(context.Context, []document.Op) error) (perSecond, cpu float64, err error) {
		turn++
		index := fmt.Sprintf("documents-%d", turn)
		settings := `{"settings":{"number_of_replicas":0,"refresh_interval":"-1"}}`
		if err := client.Call(ctx, "PUT", "/"+index, []byte(settings), nil); err != nil {
			return 0, 0, err
		}
		ops := sluicebench.Documents(index, documentCount)
		begin, spent := time.Now(), local.CPU()
		if err := by(ctx, ops); err != nil {
			return 0, 0, err
		}
		took, cpu := time.Since(begin).Seconds(), (local.CPU() - spent).Seconds()
		if err := counts(ctx, client, index, len(ops)); err != nil {
			return 0, 0, err
		}
		return float64(len(ops)) / took, cpu / float64(len(ops)) * 1e6, client.Call(ctx, "DELETE", "/"+index, nil, nil)
	}
	ours := func(ctx context.Context, ops []document.Op) error { return errors.Join(sink.WriteAll(ctx, ops)...) }
	theirs := func(ctx context.Context, ops []document.Op) error {
		_, err := sluicebench.ByIndexer(ctx, opensearchutil.BulkIndexerConfig{Client: usual}, ops)
		return err
	}
	for _, by := range []func(context.Context, []document.Op) error{theirs, ours} { // to warm up
		if _, _, err := write(by); err != nil {
			return err
		}
	}
	var documents, cpus []float64
	for range b.rounds {
		theirRate, theirCPU, err := write(theirs)
		if err != nil {
			return fmt.Errorf("BulkIndexer: %w", err)
		}
		ourRate, ourCPU, err := write(ours)
		if err != nil {
			return err
		}
		b.logf("documents a second: %.0f, BulkIndexer %.0f; CPU time of one: %.2f µs, BulkIndexer %.2f µs", ourRate, theirRate, ourCPU, theirCPU)
		documents, cpus = append(documents, ourRate/theirRate), append(cpus, theirCPU/ourCPU)
	}
	fmt.Printf("ratio opensearch_documents %.2f\n", local.Median(documents))
	fmt.Printf("ratio opensearch_cpu %.1f\n", local.Median(cpus))
	return nil
}

// counts fails when an index does not hold n documents.
func counts(ctx context.Context, client *opensearch.Client, index string, n int) error {
	if err := client.Call(ctx, "POST", "/"+index+"/_refresh", nil, nil); err != nil {
		return err
	}
	var out struct{ Count int }
	if err := client.Call(ctx, "GET", "/"+index+"/_count", nil, &out); err != nil {
		return err
	}
	if out.Count != n {
		return fmt.Errorf("index %s holds %d documents, and %d were written", index, out.Count, n)
	}
	return nil
}
