//go:build unix

// Package fleettest runs a fleet: processes of sluice run that share a state table. Tests
// and benchmarks start, stop, kill and cut off its workers, and see the effects of the
// records.
//
//	items ──▶ streamtest.Service ──▶ worker ──▶ Effects
//	                                   └──────▶ streamtest.Proxy ──▶ state table
//
// Each worker reaches all three at an endpoint of its own.
package fleettest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/state/dynamostate"
	"github.com/sluicehq/sluice/streamtest"
)

// Application is the name of the fleet's application in the state table.
const Application = "fleet"

const (
	tableName = "items"
	queueName = "effects.fifo"
)

const configuration = `
name: ` + Application + `
source: {tables: [` + tableName + `], start: TRIM_HORIZON}
daemon: {state: "dynamodb:${FLEET_STATE}"}
sinks:
  effects: {sqs: {queue: ` + queueName + `}}
routes:
  - {name: effect, on: "*#*", send: {to: effects, body: '{"item":"{pk}","version":{version}}'}}
`

// Options of a fleet. All are required but Logged.
type Options struct {
	Program  string // path of sluice
	Dir      string // an empty folder
	DynamoDB string // endpoint of the server that gets the state table
	State    string // name of the state table
	Shards   int    // of the stream, at its start

	Logged func(worker, line string) // gets the workers' logs, concurrently
}

// Fleet is a stream, a state table, and the workers that were started. Its methods are
// safe for concurrent use.
type Fleet struct {
	Effects Effects
	Table   *streamtest.Table // whose stream the workers read
	service *streamtest.Service
	o       Options
	cfg     aws.Config
	running context.Context // ends with Close
	end     context.CancelFunc

	mu      sync.Mutex
	workers []*Worker
	written map[string]int
}

// New makes a fleet without workers. End it by Close.
func New(ctx context.Context, o Options) (*Fleet, error) {
	f := &Fleet{o: o, written: make(map[string]int), cfg: aws.Config{
		Region: "us-east-1", BaseEndpoint: &o.DynamoDB, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}}
	if err := os.WriteFile(filepath.Join(o.Dir, "sluice.yaml"), []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	if err := dynamostate.Create(ctx, f.cfg, o.State, dynamostate.CreateOptions{}); err != nil {
		return nil, err
	}
	f.running, f.end = context.WithCancel(context.WithoutCancel(ctx))
	f.service = streamtest.NewService(nil)
	f.Table = f.service.CreateTable(tableName, streamtest.TableOptions{Shards: o.Shards})
	return f, nil
}

// Store returns the state of the fleet, without the workers' faults.
func (f *Fleet) Store() (*dynamostate.Store, error) { return dynamostate.New(f.cfg, f.o.State) }

// Write writes the next version of an item and returns it.
func (f *Fleet) Write(item string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written[item]++
	f.Table.Put(map[string]any{"pk": item, "version": f.written[item]})
	return f.written[item]
}

// Written returns the newest version of each item.
func (f *Fleet) Written() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.written)
}

// OnePerShard returns the name of an item of each shard that a new fleet of that many
// shards has.
func OnePerShard(shards int) []string {
	s := streamtest.NewService(nil) // places items as every service does
	defer s.Close()
	t := s.CreateTable(tableName, streamtest.TableOptions{Shards: shards})
	byShard := make(map[string]string, shards)
	for n := 0; len(byShard) < shards; n++ {
		name := fmt.Sprintf("item-%d", n)
		t.Put(map[string]any{"pk": name})
		for _, c := range t.Changes()[n:] {
			if _, ok := byShard[c.ShardID]; !ok {
				byShard[c.ShardID] = name
			}
		}
	}
	items := make([]string, 0, shards)
	for _, sh := range t.Shards() {
		items = append(items, byShard[sh.ID])
	}
	return items
}

// Close kills the workers, and deletes the state table.
func (f *Fleet) Close() error {
	f.end()
	f.mu.Lock()
	workers := f.workers
	f.mu.Unlock()
	var errs []error
	for _, w := range workers {
		w.Kill()
		errs = append(errs, w.front.Close())
		w.State.Close()
	}
	f.service.Close()
	_, err := dynamodb.NewFromConfig(f.cfg).DeleteTable(context.WithoutCancel(f.running), &dynamodb.DeleteTableInput{TableName: &f.o.State})
	return errors.Join(append(errs, err)...)
}
