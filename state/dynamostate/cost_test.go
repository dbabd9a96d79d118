package dynamostate

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/pauses"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// Of the poller. TestFleetCosts fails when one of them is not so.
const (
	heartbeatEvery    = time.Second
	checkpointEvery   = time.Second
	positionsASecond  = 20 // of one worker
	discoverEvery     = time.Minute
	storedEvery       = 5 * time.Minute // of a worker that waits for no shard
	heldRetry         = 500 * time.Millisecond
	keptAfterTheEnd   = 49 * time.Hour // the row of a finished shard
	shardLife         = 4 * time.Hour  // DynamoDB then closes a shard and opens its child
	month             = 30 * 24 * time.Hour
	kclFailover       = 10 * time.Second      // failoverTimeMillis of KCL 3.5
	kclEpsilon        = 25 * time.Millisecond // epsilonMillis
	kclRenewEvery     = kclFailover/3 - kclEpsilon
	writeUnit         = 0.625 / 1e6 // USD
	readUnit          = 0.125 / 1e6
	bytesInAWriteUnit = 1024
	bytesInAReadUnit  = 4096
)

// usage is a number of requests, or a rate per second. Each write takes a unit.
type usage struct{ writes, reads, readUnits float64 }

func (u usage) add(v usage) usage {
	return usage{u.writes + v.writes, u.reads + v.reads, u.readUnits + v.readUnits}
}

func (u usage) times(n float64) usage { return usage{u.writes * n, u.reads * n, u.readUnits * n} }

func (u usage) usd() float64 { return u.writes*writeUnit + u.readUnits*readUnit }

// workload is a fleet whose workers have about the same number of shards of one stream.
type workload struct {
	workers, shards float64
	life            time.Duration // of a shard
	kept            time.Duration // the row of a finished shard
	busy            bool          // every position moves all the time
}

// interval is the time between two writes of a shard's position.
func (w workload) interval() time.Duration {
	each := w.shards / min(w.workers, w.shards)
	return max(checkpointEvery, time.Duration(each/positionsASecond*float64(time.Second)))
}

// perSecond returns what the fleet uses, by purpose.
func (w workload) perSecond() map[string]usage {
	others := w.workers - 1
	held := w.shards * others // of each worker, those that it does not have
	listShards := discoverEvery
	if others == 0 {
		listShards = storedEvery
	}
	reads := func(n float64) usage { return usage{reads: n, readUnits: n} }
	lists := func(lists, rows, bytes float64) usage {
		return usage{reads: lists, readUnits: lists * math.Ceil(rows/lists*bytes/bytesInAReadUnit)}
	}
	u := map[string]usage{
		"heartbeats": usage{writes: w.workers}.times(rate(heartbeatEvery)),
		// Claims of held shards make the looks: the next one is a multiple of heldRetry later.
		"looks":            {},
		"lists of workers": lists(1, w.workers, memberBytes).times(w.workers * rate(listEvery)),
		"looks at shards":  reads(held * rate(heldFor)),
		"lists of shards": lists(spread, w.shards, shardBytes).times(w.workers * rate(listShards)).
			add(usage{readUnits: w.workers * w.shards * float64(w.kept) / float64(w.life) * shardBytes / bytesInAReadUnit * rate(listAll)}),
		// A claim reads the stream, the shard and its parent. Others read the child twice.
		"ends of shards": usage{writes: 3, reads: 3, readUnits: 3}.add(reads(2 * others)).times(w.shards * rate(w.life)),
		"positions":      {},
	}
	if others > 0 {
		look := math.Ceil(float64(lookNext)/float64(heldRetry)) * float64(heldRetry)
		looks := math.Ceil(float64(listEvery)/look) - 1 // a list is one, too
		u["looks"] = reads(w.workers * looks * rate(listEvery))
	}
	if w.busy {
		u["positions"] = usage{writes: w.shards}.times(rate(w.interval()))
	}
	return u
}

// requests returns the requests per second for some purposes.
func (w workload) requests(purposes ...string) (n float64) {
	for _, p := range purposes {
		u := w.perSecond()[p]
		n += u.writes + u.reads
	}
	return n
}

func rate(every time.Duration) float64 { return float64(time.Second) / float64(every) }

func (w workload) perMonth() (u usage) {
	for _, v := range w.perSecond() {
		u = u.add(v)
	}
	return u.add(pauseReads.times(w.workers)).times(month.Seconds())
}

// pauseReads are those of a daemon at rest, besides its poller.
var pauseReads = usage{reads: rate(pauses.ReadEvery), readUnits: rate(pauses.ReadEvery)}

// The bytes of rows.
var (
	shardBytes = float64(sizeOf(rows.Row{
		Key:   shardKey(state.Stream{Application: "sluice", ARN: "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"}, "shardId-00000001414576573621-f55eea83"),
		Token: strings.Repeat("T", 26),
		Attributes: encode(storedShard{Parent: "shardId-00000001414576573621-f55eea83", Sequence: strings.Repeat("1", 32),
			Owner: "sluice-7d4b9c6f5d-abcde/1/ABCDEFGH", Epoch: 10, Moves: 1, Beat: 1, Claimed: 1_800_000_000, Moved: 1_800_000_000}),
	}))
	memberBytes = float64(sizeOf(rows.Row{
		Key: memberKey("sluice", "sluice-7d4b9c6f5d-abcde/1/ABCDEFGH"), Token: strings.Repeat("T", 26),
		Attributes: encode(storedMember{Store: strings.Repeat("T", 26), Beats: 1_000_000, Released: 10, Takes: true, Shards: 100}),
	}))
)

// sizeOf returns the bytes of a row as DynamoDB counts them.
func sizeOf(r rows.Row) int {
	n := len(rows.PartitionKey) + len(r.Partition) + len(rows.SortKey) + len(r.Sort) + len(rows.TokenName) + len(r.Token)
	for name, v := range r.Attributes {
		n += len(name) + sizeOfValue(v)
	}
	return n
}

func sizeOfValue(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return len(v.Value)/2 + 2
	case *types.AttributeValueMemberL:
		n := 3
		for _, e := range v.Value {
			n += 1 + sizeOfValue(e)
		}
		return n
	case *types.AttributeValueMemberM:
		n := 3
		for name, e := range v.Value {
			n += 1 + len(name) + sizeOfValue(e)
		}
		return n
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	default:
		panic(fmt.Sprintf("a row has a %T", v))
	}
}

// costs returns the tables of docs/fleet.md.
func costs() string {
	var b strings.Builder
	fleet := func(workers, shards float64, busy bool) workload {
		return workload{workers, shards, shardLife, keptAfterTheEnd, busy}
	}
	one, two := fleet(1, 1, true).perSecond(), fleet(2, 1, false).perSecond()
	row := func(name string, u usage) {
		u = u.times(month.Seconds())
		var units []string
		if u.writes > 0 {
			units = append(units, count(u.writes)+" writes")
		}
		if u.readUnits > 0 {
			units = append(units, count(u.readUnits)+" reads")
		}
		fmt.Fprintf(&b, "- %s: %s\n", name, strings.Join(units, ", "))
	}
	row("a worker: a heartbeat each second, all shards each minute", two["heartbeats"].add(two["lists of shards"]).times(0.5))
	row("it looks at the next worker, and lists all", two["looks"].add(two["lists of workers"]).times(0.5))
	row("it looks at a shard of another worker, each 10 minutes", two["looks at shards"])
	row("it reads the pauses of routes, each minute", pauseReads)
	row("a shard whose position moves each second", one["positions"])
	row("all such shards of a worker, at most", fleet(1, 1000, true).perSecond()["positions"])
	b.WriteString("- a worker has news of lag, held items or routes: 1 read and a write for each KB, each 5 s at most\n- a message of a queue: 2 reads\n- a route is paused or resumed: 1 write, and 1 write and 2 reads for each worker\n- counts of dead letters, each 30 s: all their bytes, for each daemon; when a worker takes over or is given shards, those of new letters once more\n")
	b.WriteString("\nworkers | shards | at rest: million writes + reads | USD | all shards busy: USD | a crash repeats\n---|---|---|---|---|---\n")
	var kcl []string
	for _, shards := range []float64{10, 1000, 10_000} {
		for _, workers := range []float64{1, 10, 100} {
			u, busy := fleet(workers, shards, false).perMonth(), fleet(workers, shards, true)
			fmt.Fprintf(&b, "%s | %s | %s + %s | %s | %s | %.0f s\n", whole(workers), whole(shards), millions(u.writes), millions(u.readUnits), usd(u.usd()),
				usd(busy.perMonth().usd()), busy.interval().Seconds())
		}
		kcl = append(kcl, usd(usage{writes: shards}.times(rate(kclRenewEvery)*month.Seconds()).usd()))
	}
	fmt.Fprintf(&b, "\nWith KCL 3.5, renewals of leases alone cost %s USD for these numbers of shards.\n", strings.Join(kcl, ", "))
	return b.String()
}

func millions(n float64) string {
	if n < 9.95e6 {
		return fmt.Sprintf("%.1f", n/1e6)
	}
	return whole(n / 1e6)
}

func count(n float64) string {
	if n < 1e5 {
		return whole(n)
	}
	return millions(n) + " million"
}

func usd(n float64) string {
	if n < 99.5 {
		return fmt.Sprintf("%.2f", n)
	}
	return whole(n)
}

// whole rounds n, and separates thousands.
func whole(n float64) string {
	s := fmt.Sprintf("%.0f", n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

var update = flag.Bool("update", false, "write docs/fleet.md, and the rows of this release unless they exist")

func TestTheDocumentedCostsAreThoseOfTheCode(t *testing.T) {
	const page, begin, end = "../../docs/fleet.md", "<!-- Made of the code by go test ./state/dynamostate -update. -->\n\n", "\n<!-- Until here. -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	tables, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q before %q", page, begin, end)
	}
	want := costs()
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if tables != want {
		t.Errorf("%s has other costs than the code: run go test ./state/dynamostate -update; want\n%s", page, want)
	}
}
