package opensearch

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// ties is how many sequences in a row share a version.
const ties = 4

// exact is the write of change n of a document; a gone one leaves a tombstone.
func exact(id string, n int, gone bool) document.Op {
	mark := document.Mark{Sequence: "20250704T123321.123-" + recordtest.Sequence(n).Fence()}
	if gone {
		mark.Deleted = "2026-01-01T00:00:00Z"
	}
	body, _ := json.Marshal(map[string]any{"n": n, "sluice": mark})
	return document.Op{
		Action: document.Put, Index: "i", ID: id, Body: body,
		Fence: document.Exact, Version: int64(n/ties) << docrules.TieBits, Sequence: mark.Sequence, MarkField: "sluice",
	}
}

func (c *cluster) at(id string) (n int, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.docs["i\x00"+id+"\x00"]
	var body struct{ N int }
	if json.Unmarshal([]byte(d.body), &body) != nil {
		return -1, d.version
	}
	return body.N, d.version
}

func TestExact(t *testing.T) {
	gone := func(n int) document.Op { return exact("a", n, true) }
	at := func(n int) document.Op { return exact("a", n, false) }
	body := func(n int) string { return string(at(n).Body) }
	plain := func(op document.Op) document.Op { op.ForgetDeleted = true; return op }
	for _, tt := range []struct {
		name  string
		there string // a document or nothing, at version 128
		write document.Op
		want  int      // of the document
		asked []string // requests, without their bodies
	}{
		{"nothing is there", "", at(9), 9, []string{"@128"}},
		{"an older version", body(3), at(12), 12, []string{"@192"}},
		{"an equal version of an older change", body(8), at(9), 9, []string{"@128", "get", "#0"}},
		{"an equal version of a later change", body(10), at(9), 10, []string{"@128", "get"}},
		{"the same again", body(9), at(9), 9, []string{"@128", "get"}},
		{"a tombstone of a later change", string(gone(10).Body), at(9), 10, []string{"@128", "get"}},
		{"a tombstone over a change", body(8), gone(9), 9, []string{"@128", "get", "#0"}},
		{"a greater version of an older change", body(3), at(7), 7, []string{"@64", "get", "#0"}},
		{"a document without a mark", `{"n":3}`, at(7), 7, []string{"@64", "get", "#0"}},
		{"a deletion that is remembered", "deleted", at(9), 9, []string{"@128", "get", "@191"}},
		{"a deletion that is remembered, without tombstones", "deleted", plain(at(9)), 9, []string{"@128", "get", "@191~"}},
		{"a later deletion that is remembered, without tombstones", "deleted", plain(at(7)), -1, []string{"@64", "get", "@127~", "get"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked []string
			c := &cluster{}
			c.request = func(_ int, ops []string) *reply {
				if ops[0] == "mget" {
					asked = append(asked, "get")
				}
				return nil
			}
			c.item = func(_ int, op string) *verdict {
				var version string
				fmt.Sscanf(op, "i+a@%s", &version)
				for i := range version {
					if version[i] == '=' {
						version = version[:i]
						break
					}
				}
				if version[0] != '#' {
					version = "@" + version
				}
				asked = append(asked, version)
				return nil
			}
			if tt.there != "" {
				c.docs = map[string]stored{"i\x00a\x00": {version: 128, body: tt.there, gone: tt.there == "deleted"}}
				c.seqNo = 1
			}
			s := c.sink(t, Options{})
			if err := s.Write(t.Context(), tt.write); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if n, _ := c.at("a"); n != tt.want {
				t.Errorf("%s: change %d is there, want %d", tt.name, n, tt.want)
			}
			if fmt.Sprint(asked) != fmt.Sprint(tt.asked) {
				t.Errorf("%s: asked %v, want %v", tt.name, asked, tt.asked)
			}
		})
	}
}

// A document was deleted at a version above every change, for example by another
// program. That is no later change: the write is not done, and not lost.
func TestExactOverAGreatDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{docs: map[string]stored{"i\x00a\x00": {version: 1 << 62, gone: true}}}
		s := c.sink(t, Options{})
		if err := s.Write(t.Context(), exact("a", 1, false)); err == nil || sluice.IsPermanent(err) || !strings.Contains(err.Error(), "gc_deletes") {
			t.Error(err)
		}
		delete(c.docs, "i\x00a\x00") // it is forgotten
		if err := s.Write(t.Context(), exact("a", 1, false)); err != nil {
			t.Error(err)
		}
		if n, _ := c.at("a"); n != 1 {
			t.Errorf("change %d is there", n)
		}
	})
}

// Two writers find no document where a deletion of the same version is remembered.
// The older change comes last, and is not written over the later one.
func TestExactMadeByTwoWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{delay: time.Millisecond, docs: map[string]stored{"i\x00a\x00": {version: 128, gone: true}}}
		var wg sync.WaitGroup
		for i, op := range []document.Op{exact("a", 10, false), exact("a", 9, false)} {
			s := c.sink(t, Options{Linger: time.Nanosecond})
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 500 * time.Microsecond)
				if err := s.Write(t.Context(), op); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n, _ := c.at("a"); n != 10 {
			t.Errorf("change %d is there, want 10", n)
		}
	})
}

// A document may disappear between its read and the write by revision. Then the sink
// writes it again, also at the last version below the next one.
func TestExactGoneBeforeItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{docs: map[string]stored{"i\x00a\x00": {version: 190, body: string(exact("a", 8, false).Body)}}}
		c.request = func(n int, _ []string) *reply {
			if n == 1 && len(c.read) == 1 {
				delete(c.docs, "i\x00a\x00")
			}
			return nil
		}
		s := c.sink(t, Options{})
		if err := s.Write(t.Context(), exact("a", 9, false)); err != nil {
			t.Error(err)
		}
		if n, version := c.at("a"); n != 9 || version != 191 {
			t.Errorf("change %d is there at version %d", n, version)
		}
	})
}

// A tombstone is not written if the index remembers a later deletion, for example of a
// swept tombstone.
func TestExactTombstoneUnderADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{docs: map[string]stored{"i\x00a\x00": {version: 1 << 20, gone: true}}}
		s := c.sink(t, Options{})
		if err := s.Write(t.Context(), exact("a", 9, true)); err != nil {
			t.Error(err)
		}
	})
}

// Without tombstones one sink makes a document again as often as it is deleted,
// also within one version.
func TestExactMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		s := c.sink(t, Options{})
		for n := range 3 * ties {
			op := exact("a", n, false)
			op.ForgetDeleted = true
			if n%2 == 1 {
				op.Action, op.Body = document.Delete, nil
			}
			if err := s.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			got, _ := c.at("a")
			if gone := c.docs["i\x00a\x00"].gone; gone != (n%2 == 1) || !gone && got != n {
				t.Fatalf("after change %d: change %d is there, gone %v", n, got, gone)
			}
		}
	})
}

// A revision is used for a minute: the index of that name may be another later.
func TestExactForgetsRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		s := c.sink(t, Options{})
		write := func(n int) {
			t.Helper()
			if err := s.Write(t.Context(), exact("a", n, false)); err != nil {
				t.Fatal(err)
			}
		}
		write(0)
		c.docs["i\x00a\x00"] = stored{version: 2, seqNo: c.docs["i\x00a\x00"].seqNo, body: string(exact("a", 2, false).Body)}
		time.Sleep(recentFor + time.Second)
		write(1)
		if n, _ := c.at("a"); n != 2 {
			t.Errorf("change %d is there, want 2", n)
		}
	})
}

// A mark of another form belongs to another program: the sink does not overwrite it,
// and does not lose the write.
func TestExactBesideAnotherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{docs: map[string]stored{"i\x00a\x00": {version: 99, body: `{"sluice":7}`}}}
		s := c.sink(t, Options{})
		err := s.Write(t.Context(), exact("a", 1, false))
		if err == nil || sluice.IsPermanent(err) {
			t.Errorf("%v, want an error that another try may end", err)
		}
	})
}

// The sink compares two documents by one request. The shard of one is unavailable:
// the other is written all the same.
func TestExactWhileAShardIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older := string(exact("a", 8, false).Body)
		c := &cluster{unread: "a", docs: map[string]stored{"i\x00a\x00": {version: 128, body: older}, "i\x00b\x00": {version: 128, body: older}}}
		errs := c.sink(t, Options{}).WriteAll(t.Context(), []document.Op{exact("a", 9, false), exact("b", 9, false)})
		if errs[0] == nil || sluice.IsPermanent(errs[0]) || !strings.Contains(errs[0].Error(), "no_shard_available") {
			t.Errorf("a: %v, want the error of its shard", errs[0])
		}
		if n, _ := c.at("b"); errs[1] != nil || n != 9 {
			t.Errorf("b: change %d is there, want 9: %v", n, errs[1])
		}
		if got := c.read[0]; len(got) != 2 {
			t.Errorf("the first request read %v, want both documents", got)
		}
	})
}

// The changes of some documents come in any order, several times and by several
// writers, while requests fail before or after they had their effect, and the
// cluster forgets what was deleted. In the end each document is the latest one,
// and at no time was it older than before.
func TestExactAgainstAModel(t *testing.T) {
	const seeds = 50
	first := rand.Uint64()
	for i := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			exactHistory(t, first+i)
			if t.Failed() {
				t.Logf("seed %d", first+i)
			}
		})
	}
}

func exactHistory(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	random := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
	documents, changes := 1+random(3), 1+random(30)
	failing := float64(random(30)) / 100
	shown := map[string]int{}
	c := &cluster{delay: time.Millisecond}
	c.request = func(int, []string) *reply {
		for key, d := range c.docs { // at each request: what is there only grows
			var body struct {
				N      int
				Sluice document.Mark
			}
			if json.Unmarshal([]byte(d.body), &body) != nil || body.N < shown[key] {
				t.Errorf("seed %d: change %d after %d", seed, body.N, shown[key])
			}
			shown[key] = body.N
			if least := exact("", body.N, false).Version; d.version < least {
				t.Errorf("seed %d: change %d has the version %d, below %d", seed, body.N, d.version, least)
			}
		}
		if float64(random(1000))/1000 >= failing {
			return nil
		}
		return []*reply{{status: 429, body: "{}"}, {status: 503, body: "{}"}, {lost: true}, {err: fmt.Errorf("connection refused")}}[random(4)]
	}
	writers := make([]*Sink, 1+random(3))
	for i := range writers {
		writers[i] = c.sink(t, Options{})
	}
	var wg sync.WaitGroup
	for d := range documents {
		for n := range changes {
			for range 1 + random(2) {
				s, op, after := writers[random(len(writers))], exact(fmt.Sprint(d), n, random(4) == 0), time.Duration(random(40))*time.Millisecond
				wg.Go(func() {
					time.Sleep(after)
					for s.Write(t.Context(), op) != nil {
						time.Sleep(time.Duration(random(10)) * time.Millisecond)
					}
				})
			}
		}
	}
	wg.Wait()
	for d := range documents {
		if n, version := c.at(fmt.Sprint(d)); n != changes-1 {
			t.Errorf("seed %d: document %d is change %d at version %d, want %d", seed, d, n, version, changes-1)
		}
	}
}

// Changes of one version cost one request each while one sink writes them, and three
// after another sink's change.
func TestExactRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		first, second := c.sink(t, Options{}), c.sink(t, Options{})
		for _, step := range []struct {
			by        *Sink
			n         int
			bulk, get int
		}{
			{first, 0, 1, 0}, {first, 1, 1, 0}, {first, 2, 1, 0}, // made, and changed twice
			{second, 3, 2, 1},
			{first, 4, 1, 0},                   // of a greater version
			{second, 5, 2, 1},                  // what it knows is of an older version
			{first, 6, 2, 1},                   // what it knows was written over
			{first, 7, 1, 0}, {first, 7, 1, 1}, // and again
		} {
			bulk, get := len(c.requests), len(c.read)
			if err := step.by.Write(t.Context(), exact("a", step.n, false)); err != nil {
				t.Fatal(err)
			}
			if bulk, get = len(c.requests)-bulk, len(c.read)-get; bulk != step.bulk || get != step.get {
				t.Errorf("change %d: %d bulk requests and %d reads, want %d and %d", step.n, bulk, get, step.bulk, step.get)
			}
			if n, _ := c.at("a"); n != step.n {
				t.Errorf("change %d is there, want %d", n, step.n)
			}
		}
	})
}

// A caller that asks for the refusing document gets it whole, or learns that the index
// remembers a deletion. Other calls read marks only.
func TestExactSaysWhatRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := string(exact("", 10, false).Body)
		c := &cluster{seqNo: 7, docs: map[string]stored{
			"i\x00a\x00": {version: 128, seqNo: 6, body: later}, "i\x00b\x00": {version: 128, body: later},
			"i\x00c\x00": {version: 1 << 40, gone: true},
		}}
		var asked []string
		c.wants = func(ref getRef) { asked = append(asked, fmt.Sprint(ref.ID, ref.Only)) }
		refusals := map[string][]document.Refusal{}
		tell := func(op document.Op) document.Op {
			op.Refused = func(r document.Refusal) { refusals[op.ID] = append(refusals[op.ID], r) }
			return op
		}
		forgetful := exact("c", 9, false)
		forgetful.ForgetDeleted = true
		s := c.sink(t, Options{})
		if errs := s.WriteAll(t.Context(), []document.Op{tell(exact("a", 9, false)), exact("b", 9, false), tell(forgetful)}); errs != nil {
			t.Fatal(errs)
		}
		if got := fmt.Sprint(asked); got != "[a[] b[sluice] c[] c[]]" {
			t.Errorf("read %s", got)
		}
		a, gone := refusals["a"], refusals["c"]
		if len(a) != 1 || a[0].Version != 128 || a[0].Deleted || !a[0].Doc.Found || string(a[0].Doc.Source) != later || a[0].Doc.Revision.SeqNo != 6 {
			t.Errorf("a: %+v", a)
		}
		if len(gone) != 1 || !gone[0].Deleted || gone[0].Doc.Found {
			t.Errorf("c: %+v", gone)
		}
	})
}
