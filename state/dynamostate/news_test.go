package dynamostate

import (
	"testing"
	"testing/synctest"
)

// Announce reaches other workers with their next heartbeat, and costs no read of theirs.
// A worker that joins has news, too.
func TestAnnounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &meter{Table: new(memory), used: make(map[string]usage)}
		a, b, command := over(table), over(table), over(table)
		for owner, s := range map[string]*Store{"a": a, "b": b} {
			if n := s.News(stream.Application); n != 0 {
				t.Errorf("%d news before a claim", n)
			}
			if _, err := s.Claim(t.Context(), stream, owner, "", owner); err != nil {
				t.Fatal(err)
			}
		}
		beat := func() {
			t.Helper()
			for owner, s := range map[string]*Store{"a": a, "b": b} {
				if err := s.Heartbeat(t.Context(), owner); err != nil {
					t.Fatal(err)
				}
			}
		}
		beat() // each hears of the other
		app := stream.Application
		before := [2]uint64{a.News(app), b.News(app)}
		if before[0] == 0 || before[1] == 0 {
			t.Errorf("no news after the first claim: %v", before)
		}
		beat()
		if now := [2]uint64{a.News(app), b.News(app)}; now != before {
			t.Errorf("news without an announcement: %v, before %v", now, before)
		}
		if deaf, err := command.Announce(t.Context(), app); err != nil || len(deaf) > 0 {
			t.Fatalf("%v, %v", deaf, err)
		}
		table.drain()
		beat()
		if used := table.drain(); used["members"].reads > 0 {
			t.Errorf("hearing costs reads: %v", used)
		}
		if a.News(app) != before[0]+1 || b.News(app) != before[1]+1 {
			t.Errorf("news %d and %d, before %v", a.News(app), b.News(app), before)
		}
		if deaf, err := a.Announce(t.Context(), app); err != nil || len(deaf) > 0 {
			t.Fatalf("%v, %v", deaf, err)
		}
		beat()
		if a.News(app) != before[0]+1 || b.News(app) != before[1]+2 {
			t.Errorf("of a's own announcement: news %d and %d, before %v", a.News(app), b.News(app), before)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if deaf, err := command.Announce(t.Context(), app); err != nil || len(deaf) > 0 {
			t.Errorf("a worker that ended is deaf: %v, %v", deaf, err)
		}
	})
}
