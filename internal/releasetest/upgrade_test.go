//go:build integration && proof && unix

package releasetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/staterules"
)

// A daemon goes to the next version and back, in order and by SIGKILL, while its table is
// written: nothing is lost, and both versions read what the other has stored.
func TestProofUpgradeOfADaemon(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.db")
	u := newUpgrade(t, state, 1)
	stopWriting := u.write()

	p := u.start(u.old)
	u.park(u.old, "bad-1")
	u.run(u.old, "route", "pause", "held", "--for", "12h")
	u.put(u.tables[0], "held", "held-1", 1) // the position stays before it, and names later records as settled
	u.more(p)
	u.end(p)
	if u.agree(1, 1); len(addedInFile(t, state)) > 0 {
		t.Errorf("the old version has stored the new field in %v", addedInFile(t, state))
	}
	kept, err := os.ReadFile(state) // the copy of docs/versions.md
	if err != nil {
		t.Fatal(err)
	}

	p = u.start(u.next)
	u.park(u.next, "bad-2")
	u.redrive(u.next, "bad-1") // each of the two letters has the new field
	u.run(u.next, "route", "slow", "ordered", "--concurrency", "1000", "--for", "12h")
	u.more(p)
	u.end(p)
	u.agree(2, 2)
	if have := addedInFile(t, state); have["shards"] != 1 || have["letters"] != 2 || have["values"] != 1 {
		t.Errorf("the next version has stored its field in %v, want all", have)
	}

	p = u.start(u.old)
	u.redrive(u.old, "bad-2")
	u.run(u.old, "route", "slow", "every", "--concurrency", "1000", "--for", "12h")
	u.more(p)
	u.end(p)
	u.agree(2, 3)
	if have := addedInFile(t, state); have["shards"] != 0 || have["letters"] != 1 || have["values"] != 0 {
		t.Errorf("the new field is in %v: want it only in the letter that the old version has not written again", have)
	}
	if n := u.repeated(); n > 0 {
		t.Errorf("orderly ends have repeated %d changes", n)
	}

	for _, program := range []string{u.next, u.old, u.next} { // each is killed
		p = u.start(program)
		u.more(p)
		p.Kill()
		u.agree(2, 3)
	}
	p = u.start(u.old)
	u.more(p)
	stopWriting()
	u.run(u.old, "route", "resume", "held")
	u.caughtUp(p)
	u.end(p)
	t.Logf("%d changes, %d repeated after three kills", u.count(), u.repeated())

	// As after a refusal of the file: the copy repeats what came since, and loses nothing.
	if err := os.WriteFile(state, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	u.agree(1, 1)
	before, repeated := u.count(), u.repeated()
	p = u.start(u.old)
	u.run(u.old, "route", "resume", "held")
	stopWriting = u.write()
	localtest.Await(t, "changes behind the repeated ones", func() string { return u.below(before+100, p) })
	stopWriting()
	u.caughtUp(p)
	u.end(p)
	u.agree(2, 0)
	if u.repeated() == repeated {
		t.Error("the copy has repeated nothing: it was not that of the state before")
	}
}

// The workers of a fleet are replaced one after the other, and go back: nothing is lost,
// and workers of both versions work side by side.
func TestProofUpgradeOfAFleet(t *testing.T) {
	const workers = 3
	u := newUpgrade(t, "dynamodb:"+localtest.Name("state"), 2*workers)
	u.run(u.old, "state", "create")
	stopWriting := u.write()
	fleet := make([]*local.Process, workers)
	for i := range fleet {
		fleet[i] = u.start(u.old)
	}
	u.park(u.old, "bad-0")
	u.run(u.old, "route", "slow", "ordered", "--concurrency", "1000", "--for", "12h")
	u.more(fleet...)
	n := 0
	for _, to := range []string{u.next, u.old} {
		for i := range fleet {
			u.end(fleet[i])
			fleet[i] = u.start(to)
			u.more(fleet...)
			n++
			u.park(to, fmt.Sprintf("bad-%d", n)) // by a worker of either version
			u.redrive(to, fmt.Sprintf("bad-%d", n-1))
			u.agree(n+1, 1)
		}
	}
	if have := addedInTable(u); have["shards"] != len(u.tables) || have["letters"] == 0 {
		t.Errorf("the new field is in %v: want it in all shards, although the old version has written their rows again", have)
	}
	stopWriting()
	u.caughtUp(fleet...)
	for _, p := range fleet {
		u.end(p)
	}
	if n := u.repeated(); n > 0 {
		t.Errorf("orderly ends have repeated %d changes", n)
	}
	t.Logf("%d changes", u.count())
}

// park writes an item whose route fails for good, and waits for the dead letter.
func (u *upgrade) park(program, id string) {
	u.Helper()
	u.put(u.tables[0], "bad", id, 1)
	localtest.Await(u, "the dead letter of "+id, func() string {
		if out := u.run(program, "dlq", "list", "--json", "--key", "id="+id); !strings.Contains(out, id) {
			return out
		}
		return ""
	})
}

// redrive runs the dead letter of an item again, which fails again and is stored anew.
func (u *upgrade) redrive(program, id string) {
	u.Helper()
	const failed = 1
	u.exits(failed, program, "dlq", "redrive", "--key", "id="+id)
	if out := u.run(program, "dlq", "list", "--json", "--key", "id="+id); !strings.Contains(strings.ReplaceAll(out, " ", ""), `"redrives":1`) {
		u.Errorf("after a redrive the dead letter of %s is %s", id, out)
	}
}

// agree expects that both versions list the same dead letters, pauses and, of daemons that
// do not run, positions.
func (u *upgrade) agree(letters, pauses int) {
	u.Helper()
	asks := [][]string{{"dlq", "list", "--json"}}
	if !u.fleet() {
		asks = append(asks, []string{"state", "show", u.tables[0], "--json"})
	}
	for _, ask := range asks {
		if old, next := u.run(u.old, ask...), u.run(u.next, ask...); old != next {
			u.Errorf("%v: the old version lists\n%s\nand the next\n%s", ask, old, next)
		}
	}
	if out := u.run(u.old, "dlq", "list", "--json"); strings.Count(out, `"parkedAt"`) != letters {
		u.Errorf("want %d dead letters: %s", letters, out)
	}
	type route struct {
		Route       string
		Paused      bool
		Concurrency int
		Since       string
	}
	read := func(program string) string {
		var all struct{ Routes []route }
		if err := json.Unmarshal([]byte(u.run(program, "route", "list", "--json")), &all); err != nil {
			u.Fatal(err)
		}
		return fmt.Sprintf("%+v", all.Routes)
	}
	if old, next := read(u.old), read(u.next); old != next || strings.Count(old, "Since:2") != pauses {
		u.Errorf("want %d pauses: the old version lists %s, and the next %s", pauses, old, next)
	}
}

// addedInFile counts the values with the field of the next version, by their bucket.
func addedInFile(t *testing.T, path string) map[string]int {
	t.Helper()
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found := make(map[string]int)
	var each func(name []byte, b *bbolt.Bucket) error
	each = func(name []byte, b *bbolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			if v == nil {
				return each(k, b.Bucket(k))
			}
			if bytes.Contains(v, []byte(`"`+addedName+`"`)) {
				found[string(name)]++
			}
			return nil
		})
	}
	if err := db.View(func(tx *bbolt.Tx) error { return tx.ForEach(each) }); err != nil {
		t.Fatal(err)
	}
	return found
}

// addedInTable counts the rows with the field of the next version, by their kind.
func addedInTable(u *upgrade) map[string]int {
	u.Helper()
	table := strings.TrimPrefix(u.state, "dynamodb:")
	found := make(map[string]int)
	pages := dynamodb.NewScanPaginator(u.db, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		out, err := pages.NextPage(u.Context())
		if err != nil {
			u.Fatal(err)
		}
		for _, row := range out.Items {
			var k struct{ Partition, Sort string }
			if err := attributevalue.UnmarshalMap(row, &k); err != nil {
				u.Fatal(err)
			}
			if kind, _, _ := strings.Cut(k.Partition, "#"); row[addedName] != nil && !strings.HasSuffix(k.Partition, "#"+staterules.Jobs) {
				found[kind]++
			}
		}
	}
	return found
}
