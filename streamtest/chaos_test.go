package streamtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice"
)

var allChaos = Chaos{
	Seed: 7, Errors: 0.1, Throttles: 0.1, Hang: 0.02, Cut: 0.05, Slow: 0.2, SlowFor: 2 * time.Second,
	Empty: 0.2, Short: 0.3, Expired: 0.05, Shuffled: 0.5, Incomplete: 0.3, Repeated: 0.3, Stale: 0.3,
}

var requestID = regexp.MustCompile(`STREAMTEST\d+`) // a count of all calls

// What happens to a call does not depend on what other goroutines do meanwhile,
// nor on the time: a seed that found a bug finds it again.
func TestChaosIsDrawnFromTheSeed(t *testing.T) {
	run := func(seed uint64, together bool) (outcomes []string) {
		synctest.Test(t, func(t *testing.T) {
			p := newProbe(t)
			if together {
				p.s.Advance(12345 * time.Hour)
			}
			table := p.s.CreateTable("orders", TableOptions{Shards: 4})
			put(table, "abcdefghijklmnopqrstuvwxyz")
			shards := table.Shards()
			chaos := allChaos
			chaos.Seed = seed
			var its []string
			for _, s := range shards {
				its = append(its, p.must(p.iterator(table, s.ID, horizon)))
			}
			p.s.Chaos(chaos)
			outcomes = make([]string, len(shards))
			var wg sync.WaitGroup
			for i := range shards {
				one := func() {
					for range 60 {
						ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
						start := time.Now()
						body, err := p.api.GetRecords(ctx, its[i], 0)
						cancel()
						page, _ := sluice.DecodeGetRecords(body, sluice.Source{})
						outcomes[i] += fmt.Sprint(requestID.ReplaceAllString(code(err), ""), " ", letters(page.Records), " ", time.Since(start), "\n")
					}
				}
				if together {
					wg.Go(one)
				} else {
					one()
				}
			}
			wg.Wait()
		})
		return outcomes
	}
	alone := run(1, false)
	want(t, "outcomes together", run(1, true), alone)
	if slices.Equal(run(2, false), alone) {
		t.Error("another seed does the same")
	}
	for _, kind := range []string{"InternalServerError", "LimitExceededException", "ThrottlingException", "ProvisionedThroughputExceededException",
		"ExpiredIteratorException", "deadline exceeded", "unexpected EOF"} {
		if !strings.Contains(strings.Join(alone, ""), kind) {
			t.Errorf("never in 240 calls: %s", kind)
		}
	}
}

func TestChaosOfListings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{Shards: 20})
		root := table.Shards()[0].ID
		put(table, "abcdefghijklmnopqrstuvwxyz")
		left, _ := table.Split(root)
		gone := table.Shards()[1].ID
		table.Roll(gone)
		table.Trim(gone, -1)
		truth, _ := p.shards(table.StreamARN())
		p.s.Chaos(Chaos{Seed: 1, Shuffled: 0.5, Incomplete: 0.5, Repeated: 0.5, Stale: 0.5})
		seen := make(map[string]int)
		for range 200 {
			got, _ := p.shards(table.StreamARN())
			at := func(prefix string) int {
				return slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, prefix) })
			}
			switch {
			case slices.Equal(got, truth):
				seen["true"]++
			case len(got) > len(truth):
				seen["longer"]++
			case len(got) < len(truth):
				seen["shorter"]++
			}
			for name, is := range map[string]bool{
				"parent before child":  at(root) >= 0 && at(root) < at(left),
				"child before parent":  at(left) >= 0 && at(left) < at(root),
				"child without parent": at(left) >= 0 && at(root) < 0,
				"closed shard open":    slices.Contains(got, root+"<+"),
				"open with child":      slices.Contains(got, root+"<+") && at(left) >= 0,
				"trimmed shard listed": at(gone) >= 0,
			} {
				if is {
					seen[name]++
				}
			}
		}
		for _, name := range []string{"true", "longer", "shorter", "parent before child", "child before parent", "child without parent",
			"closed shard open", "open with child", "trimmed shard listed"} {
			if seen[name] == 0 {
				t.Errorf("never in 200 listings: %s", name)
			}
		}
		p.s.Chaos(Chaos{Shuffled: 1})
		got, _ := p.shards(table.StreamARN())
		if slices.Equal(got, truth) || !slices.Equal(sorted(got), sorted(truth)) {
			t.Errorf("shuffled: %v", got)
		}
		p.s.Chaos(Chaos{Repeated: 1})
		got, _ = p.shards(table.StreamARN())
		if len(got) <= len(truth) || !slices.Equal(slices.Compact(sorted(got)), sorted(truth)) {
			t.Errorf("repeated: %v", got)
		}
		table.Hide(left, 1)
		for i := range 50 {
			if got, _ := p.shards(table.StreamARN()); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, left) }) {
				t.Errorf("repeated: a hidden shard, in listing %d", i)
			}
			table.Hide(left, 1)
		}
		p.s.Chaos(Chaos{})
		table.Hide(left, 0)
		got, _ = p.shards(table.StreamARN())
		want(t, "the listing when chaos has ended", got, truth)
	})
}

// A reader that does what the documentation asks of it loses nothing of a
// stream that splits, rolls and misbehaves, and sees each item's changes in
// order: chaos lies about when and where, never about what.
func TestChaosLosesNothing(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProbe(t)
				p.s.SetLimits(Limits{PageShards: 3})
				table := p.s.CreateTable("orders", TableOptions{Shards: 2})
				r := rand.New(rand.NewPCG(seed, 1))
				for i := range 300 {
					switch key := fmt.Sprint(r.IntN(20)); {
					case r.IntN(4) > 0:
						table.Put(map[string]any{"pk": key, "n": i})
					case r.IntN(2) > 0:
						table.Delete(map[string]any{"pk": key})
					case r.IntN(3) == 0:
						var open []string
						for _, s := range table.Shards() {
							if s.Open {
								open = append(open, s.ID)
							}
						}
						if id := open[r.IntN(len(open))]; r.IntN(2) == 0 {
							table.Split(id)
						} else {
							table.Roll(id)
						}
					}
					time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
				}
				chaos := allChaos
				chaos.Seed = seed
				p.s.Chaos(chaos)
				table.DisableStream() // so that there is an end
				got := (&follower{p: p, table: table}).run()
				var all []string
				for _, c := range table.Changes() {
					all = append(all, string(c.Sequence))
				}
				if len(got) != len(all) || !slices.Equal(sorted(got), sorted(all)) {
					t.Errorf("%d records read, %d written", len(got), len(all))
				}
			})
		})
	}
}

// follower reads a stream to its end, parents before children, each item's
// records in order.
type follower struct {
	p     *probe
	table *Table

	shards map[string]string // to parents
	done   map[string]bool
	seqs   []string
	last   map[string]sluice.Sequence // by item
}

func (f *follower) run() []string {
	f.shards, f.done, f.last = make(map[string]string), make(map[string]bool), make(map[string]sluice.Sequence)
	for quiet := 0; quiet < 10; quiet++ {
		f.list()
		for id, parent := range f.shards {
			_, listed := f.shards[parent]
			if f.done[id] || listed && !f.done[parent] || parent != "" && !listed && quiet < 8 { // it may be listed yet
				continue
			}
			f.read(id)
			quiet = 0
		}
	}
	return f.seqs
}

// try makes a call until it is answered.
func (f *follower) try(call func(context.Context) error) {
	for {
		ctx, cancel := context.WithTimeout(f.p.t.Context(), 10*time.Second)
		err := call(ctx)
		cancel()
		if err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (f *follower) list() {
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(f.table.StreamARN())}
	for {
		f.try(func(ctx context.Context) error {
			out, err := f.p.api.DescribeStream(ctx, in)
			if err != nil {
				return err
			}
			for _, s := range out.StreamDescription.Shards {
				f.shards[*s.ShardId] = aws.ToString(s.ParentShardId)
			}
			in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId
			return nil
		})
		if in.ExclusiveStartShardId == nil {
			return
		}
	}
}

func (f *follower) read(id string) {
	var last sluice.Sequence
	it := ""
	for !f.done[id] {
		f.try(func(ctx context.Context) (err error) {
			if it == "" {
				kind := types.ShardIteratorTypeTrimHorizon
				var seq []sluice.Sequence
				if last != "" {
					kind, seq = after, []sluice.Sequence{last}
				}
				if it, err = f.p.with(ctx).iterator(f.table, id, kind, seq...); err != nil {
					return err
				}
			}
			body, err := f.p.api.GetRecords(ctx, it, 0)
			if code(err) == "ExpiredIteratorException" {
				it = ""
			}
			if err != nil {
				return err
			}
			page, err := sluice.DecodeGetRecords(body, sluice.Source{})
			if err != nil {
				return err
			}
			for _, r := range page.Records {
				key := string(r.Keys.Raw())
				if f.last[key].Compare(r.Sequence) >= 0 {
					f.p.t.Errorf("%s: %s follows %s", key, r.Sequence, f.last[key])
				}
				f.last[key], last = r.Sequence, r.Sequence
				f.seqs = append(f.seqs, string(r.Sequence))
			}
			it = page.NextShardIterator
			f.done[id] = it == ""
			return nil
		})
	}
}
