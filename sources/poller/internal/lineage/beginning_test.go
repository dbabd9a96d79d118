package lineage

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/state"
)

func TestShardCreated(t *testing.T) {
	for id, want := range map[string]int64{
		"shardId-00000001414576573621-f55eea83": 1414576573621,
		"shardId-00000001414576573621-":         1414576573621,
		"shardId-1414576573621-f55eea83":        0,
		"shardId-00000001414576573621":          0,
		"shardId-0000000141457657362x-f55eea83": 0,
		"shardId-00000000000000000000-f55eea83": 0,
		"H19ae6b9d9b2:a":                        0,
		"":                                      0,
	} {
		got := ShardCreated(id)
		if want == 0 && !got.IsZero() || want != 0 && got.UnixMilli() != want {
			t.Errorf("%s: %v, want %d", id, got, want)
		}
	}
}

func TestBeginning(t *testing.T) {
	now := time.Now()
	ago := func(hours float64) time.Time { return now.Add(-time.Duration(hours * float64(time.Hour))) }
	horizon := func(hours float64) state.Start { return state.Start{Position: "TRIM_HORIZON", At: ago(hours)} }
	atLatest := func(hours float64) state.Start { return state.Start{Position: latest, At: ago(hours)} }
	for _, c := range []struct {
		name           string
		created        time.Time
		start          state.Start
		ours, doubtful bool
	}{
		{"young", ago(1), horizon(100), true, false},
		{"old, made after the start", ago(23.5), horizon(100), true, true},
		{"old, held by the stream at the start", ago(30), horizon(10), true, true},
		{"old at the start, which is now", ago(30), horizon(0), false, false},
		{"old at the start, which was a moment ago", ago(30), horizon(.9), false, false},
		{"old at the start, which was a while ago", ago(30), horizon(1.1), true, true},
		{"made after a start at LATEST", ago(23.5), atLatest(30), true, true},
		{"made before a start at LATEST of today", ago(30), atLatest(23.9), false, false},
		{"made before a start at LATEST of yesterday", ago(30), atLatest(24.1), true, true},
		{"of a stream that is read whole", ago(23.5), state.Start{Position: "TRIM_HORIZON"}, true, true},
		{"young, of a stream that is read whole", ago(22.5), state.Start{Position: "TRIM_HORIZON"}, true, false},
		{"of unknown age, just started", time.Time{}, horizon(0), false, false},
		{"of unknown age", time.Time{}, horizon(2), true, true},
		{"of unknown age, of a stream that is read whole", time.Time{}, state.Start{Position: "TRIM_HORIZON"}, true, true},
	} {
		b := Beginning{created: c.created, from: oursFrom(c.start)}
		if b.Ours(now) != c.ours || b.Doubtful(now) != c.doubtful {
			t.Errorf("%s: ours %v, doubtful %v; want %v, %v", c.name, b.Ours(now), b.Doubtful(now), c.ours, c.doubtful)
		}
	}
}
