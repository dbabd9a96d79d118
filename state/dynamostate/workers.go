package dynamostate

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// Publish sets a fingerprint of this process's configuration, which Workers shows beside
// its owners. Call it before the first Claim.
func (s *Store) Publish(config string) { s.members.config.Store(config) }

func (m *members) published() string {
	config, _ := m.config.Load().(string)
	return config
}

// Workers lists the owners of an application, ordered by name: those that live, those
// that ended in the last 7 days, and all that have a shard. It is for people and changes
// nothing. It watches until each worker has written its heartbeat: for about a second, and
// for 4 s if one is silent.
func (s *Store) Workers(ctx context.Context, app string) ([]holders.Worker, error) {
	if err := errors.Join(ctx.Err(), staterules.Application(app)); err != nil {
		return nil, err
	}
	all := make(map[string]*holders.Worker)
	if err := s.watchAll(ctx, app, all); err != nil {
		return nil, err
	}
	streams, err := s.Streams(ctx, app)
	if err != nil {
		return nil, err
	}
	for _, st := range append(streams, state.Stream{Application: app, ARN: staterules.Jobs}) {
		for part := range uint32(spread) {
			for sh, err := range list[storedShard](ctx, s.rows, shardsOf(st, part), "", 0) {
				if err != nil {
					return nil, err
				}
				id, v := sh.row.Sort, sh.v
				if v.Owner == "" {
					continue
				}
				w := all[v.Owner]
				if w == nil {
					w = &holders.Worker{Name: v.Owner, State: holders.Fenced} // it had a row to claim: that expired
					all[v.Owner] = w
				}
				if st.ARN == staterules.Jobs {
					w.Jobs = append(w.Jobs, id)
					continue
				}
				w.Shards = append(w.Shards, holders.Held{StreamARN: st.ARN, ShardID: id, Claimed: wall(v.Claimed), Moved: wall(v.Moved)})
			}
		}
	}
	var workers []holders.Worker
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w := all[name]
		slices.SortFunc(w.Shards, func(a, b holders.Held) int {
			return cmp.Or(strings.Compare(a.StreamARN, b.StreamARN), strings.Compare(a.ShardID, b.ShardID))
		})
		slices.Sort(w.Jobs)
		workers = append(workers, *w)
	}
	return workers, nil
}

// wall returns the time of a row; zero if it has none.
func wall(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// watchAll adds the members to all. A member lives when it writes a heartbeat: others
// write to its row, too.
func (s *Store) watchAll(ctx context.Context, app string, all map[string]*holders.Worker) error {
	type beat struct {
		store string
		n     uint64
	}
	var first map[string]beat // by name
	for begun := time.Now(); ; {
		beats, doubtful := make(map[string]beat), false
		for listed, err := range list[storedMember](ctx, s.rows, membersOf(app), "", 0) {
			if err != nil {
				return err
			}
			name, m := listed.row.Sort, listed.v
			w, now := &holders.Worker{Name: name, State: holders.Living, Config: m.Config}, beat{m.Store, m.Beats}
			switch {
			case m.Fenced:
				w.State, w.Ended = holders.Fenced, wall(m.Expires).Add(-keepFenced)
			case first == nil || first[name] == now:
				w.State, doubtful = holders.Silent, true
			}
			beats[name], all[name] = now, w
		}
		if first == nil {
			first = beats
		}
		if !doubtful || time.Since(begun) >= silentAfter {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookDoubtful):
		}
	}
}

var _ holders.Fleet = (*Store)(nil)
