package statetest_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// store keeps everything in maps and breaks the one rule of the contract that
// fault names.
type store struct {
	fault  string
	owners staterules.Presence

	mu     sync.Mutex
	writes int
	waits  int // of windows

	starts  map[state.Stream]state.Start
	shards  map[state.Stream]map[string]state.Shard
	letters map[string]map[string][]byte // application, id
	labels  map[string]map[string][]byte // application, id
	values  map[string]map[string][]byte // application, name
}

func newStore(fault string) *store {
	return &store{fault: fault, starts: make(map[state.Stream]state.Start),
		shards: make(map[state.Stream]map[string]state.Shard), letters: make(map[string]map[string][]byte),
		labels: make(map[string]map[string][]byte), values: make(map[string]map[string][]byte)}
}

func (s *store) is(fault string) bool { return s.fault == fault }

// lock waits its turn and returns why the call must not be made.
func (s *store) lock(ctx context.Context, st state.Stream) error {
	s.mu.Lock()
	err := ctx.Err()
	if s.is("cancelled calls are made") {
		err = nil
	}
	if s.is("names may be empty") {
		return err
	}
	return errors.Join(err, st.Validate())
}

// window is where another call may come between the reading and the writing of
// a store without conditions. It waits for one that writes, asleep, so that a
// machine with much else to do gets round to it: for 50 ms, and once it has waited
// for nothing often, for 5 ms.
func (s *store) window() {
	before, most := s.writes, 500
	if s.waits >= 5000 {
		most = 50
	}
	for i := 0; i < most && s.writes == before; i++ {
		s.waits++
		s.mu.Unlock()
		time.Sleep(100 * time.Microsecond)
		s.mu.Lock()
	}
	if s.writes != before {
		s.waits = 0
	}
}

// of returns the shards of a stream.
func (s *store) of(st state.Stream) map[string]state.Shard {
	if s.is("applications share rows") {
		st.Application = ""
	}
	if s.is("names run into one another") {
		st = state.Stream{ARN: st.Application + st.ARN}
	}
	if s.shards[st] == nil {
		s.shards[st] = make(map[string]state.Shard)
	}
	return s.shards[st]
}

func (s *store) put(st state.Stream, sh state.Shard) {
	s.of(st)[sh.ID] = sh
	s.writes++
}

func (s *store) Start(ctx context.Context, st state.Stream, want state.Start) (state.Start, error) {
	err := s.lock(ctx, st)
	defer s.mu.Unlock()
	if err != nil {
		return state.Start{}, err
	}
	have, ok := s.starts[st]
	switch {
	case ok && (!s.is("a start replaces another") || want == (state.Start{})):
		return have, nil
	case want == (state.Start{}):
		return state.Start{}, state.ErrNoStart
	}
	err = want.Validate()
	if s.is("starts are not conditional writes") && err == nil {
		s.window()
		s.writes++
	}
	if err == nil || s.is("a refused start is stored") {
		s.starts[st] = want
	}
	if s.is("starts lose their fractions") {
		want.At = want.At.Truncate(time.Second)
		s.starts[st] = want
	}
	return want, err
}

func (s *store) Streams(ctx context.Context, app string) ([]state.Stream, error) {
	err := s.lock(ctx, state.Stream{Application: app, ARN: "any"})
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	all := make(map[state.Stream]bool)
	for st := range s.starts {
		all[st] = true
	}
	for st, shards := range s.shards {
		if len(shards) > 0 && !s.is("streams are those with a start") {
			all[st] = true
		}
	}
	maps.DeleteFunc(all, func(st state.Stream, _ bool) bool { return st.Application != app })
	return slices.SortedFunc(maps.Keys(all), func(a, b state.Stream) int { return strings.Compare(a.ARN, b.ARN) }), nil
}

func (s *store) Shards(ctx context.Context, st state.Stream) ([]state.Shard, error) {
	err := s.lock(ctx, st)
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	shards := slices.SortedFunc(maps.Values(s.of(st)), func(a, b state.Shard) int { return strings.Compare(a.ID, b.ID) })
	if s.is("a listing is its first page") {
		shards = shards[:min(len(shards), 100)]
	}
	return shards, nil
}

func (s *store) Finish(ctx context.Context, st state.Stream, ids ...string) error {
	err := s.lock(ctx, st)
	defer s.mu.Unlock()
	if err == nil && slices.Contains(ids, "") && !s.is("names may be empty") {
		err = errors.New("a shard id is empty")
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, ok := s.of(st)[id]; !ok || s.is("finish finishes stored shards") {
			s.put(st, state.Shard{ID: id, Position: state.Position{Finished: true}})
		}
	}
	return nil
}

func (s *store) Forget(ctx context.Context, st state.Stream, ids ...string) error {
	err := s.lock(ctx, st)
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, id := range ids {
		sh, ok := s.of(st)[id]
		sh.Position.Finished = sh.Position.Finished || s.is("unfinished shards are forgotten")
		if s.is("held shards are forgotten") {
			sh.Owner = ""
		}
		switch {
		case !ok && s.is("what is not stored cannot be forgotten"):
			return errors.New("no such shard")
		case s.is("who is silent is fenced") && sh.Owner != "" && s.owners.Fence(sh.Owner):
		case !sh.Forgettable(s.owners.Living) || s.is("nothing is forgotten"):
		case s.is("owners' shards are kept for ever") && sh.Owner != "":
		case s.is("a forgotten shard keeps its row"):
			s.put(st, state.Shard{ID: id})
		default:
			delete(s.of(st), id)
		}
	}
	if s.is("the start is forgotten") {
		delete(s.starts, st)
	}
	if s.is("shards are forgotten in every stream") {
		for _, shards := range s.shards {
			maps.DeleteFunc(shards, func(id string, _ state.Shard) bool { return slices.Contains(ids, id) })
		}
	}
	if s.is("children of the forgotten are forgotten") {
		maps.DeleteFunc(s.of(st), func(_ string, sh state.Shard) bool { return slices.Contains(ids, sh.Parent) })
	}
	return nil
}

func (s *store) Claim(ctx context.Context, st state.Stream, id, parent, owner string) (state.Shard, error) {
	err := s.lock(ctx, st)
	defer s.mu.Unlock()
	if err == nil && (id == "" || owner == "") && !s.is("names may be empty") {
		err = errors.New("neither may be empty")
	}
	if err != nil {
		return state.Shard{}, err
	}
	sh := s.of(st)[id]
	before := sh
	if !s.is("claims are no sign of life") || before.ID != "" {
		if !s.owners.Seen(owner) && !s.is("the fenced may claim") {
			return state.Shard{}, state.ErrFenced
		}
	}
	if sh.Owner != "" && sh.Owner != owner && !s.is("claims take from the living") &&
		(s.is("owners live for ever") || s.is("nobody is fenced") && s.owners.Living(sh.Owner) ||
			!s.is("nobody is fenced") && !s.owners.Fence(sh.Owner)) {
		if s.is("a refused claim raises the epoch") {
			sh.Epoch++
			s.put(st, sh)
		}
		return state.Shard{}, state.ErrHeld
	}
	sh.ID = id
	if !s.is("a parent that is not named is forgotten") {
		parent = cmp.Or(parent, sh.Parent)
	}
	epoch := s.of(st)[parent].Epoch
	if s.is("a child's epoch is its own") {
		epoch = 0
	}
	sh = sh.Claimed(state.Shard{ID: parent, Epoch: epoch}, owner)
	if s.is("claims keep the epoch") && before.Epoch > 0 {
		sh.Epoch = before.Epoch
	}
	if s.is("claims erase the position") {
		sh.Position = state.Position{}
	}
	if s.is("the shards of a stream are one row") {
		row := maps.Clone(s.of(st))
		s.window()
		s.shards[st] = row
	}
	s.put(st, sh)
	return sh, nil
}

func (s *store) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	errs := make([]error, len(cs))
	failed := s.is("no error is a list of nils")
	for i, c := range cs {
		err := s.lock(ctx, c.Lease.Stream)
		if i >= 100 && s.is("a hundred checkpoints at most") {
			s.mu.Unlock()
			continue
		}
		if err == nil {
			err = s.checkpoint(c)
		}
		s.mu.Unlock()
		errs[i], failed = err, failed || err != nil
		if err != nil && s.is("one checkpoint hinders the others") {
			for ; i < len(errs); i++ {
				errs[i] = err
			}
			return errs
		}
	}
	if !failed {
		return nil
	}
	return errs
}

func (s *store) checkpoint(c state.Checkpoint) error {
	sh, known := s.of(c.Lease.Stream)[c.Lease.ShardID]
	if s.is("a checkpoint makes the row") && !known && c.Lease.Owner != "" {
		sh = state.Shard{ID: c.Lease.ShardID, Owner: c.Lease.Owner, Epoch: c.Lease.Epoch}
	}
	if s.is("checkpoints look at the owner only") && sh.Owner == c.Lease.Owner && sh.Owner != "" {
		c.Lease.Epoch = sh.Epoch
	}
	next, err := sh.Advanced(c)
	switch {
	case errors.Is(err, state.ErrRegress) && (s.is("positions go back") ||
		s.is("positions are compared as text") && c.Position.Sequence >= sh.Position.Sequence && !sh.Position.Finished):
		next, err = sh, nil
		next.Position = c.Position
	case err != nil && sh.Check(c.Lease) == nil && !errors.Is(err, state.ErrRegress) && s.is("positions may be anything"):
		next, err = sh, nil
		next.Position = c.Position
	case errors.Is(err, state.ErrRegress) && s.is("a finished shard is opened again") && sh.Position.Finished:
		next, err = sh, nil
		next.Position = c.Position
	case err == nil && s.is("what is settled ahead is forgotten"):
		next.Position.Ahead = ""
	case err == nil && s.is("what is settled ahead is kept") && c.Position.Ahead == "":
		next.Position.Ahead = sh.Position.Ahead
	case err == nil && s.is("the end forgets the position") && c.Position.Finished:
		next.Position.Sequence = c.Position.Sequence
	case err == nil && s.is("positions are compared as text") && c.Position.Sequence < sh.Position.Sequence && !c.Position.Finished:
		err = state.ErrRegress
	}
	if err != nil {
		return err
	}
	if s.is("checkpoints are not conditional writes") {
		s.window()
	}
	s.put(c.Lease.Stream, next)
	return nil
}

func (s *store) Release(ctx context.Context, l state.Lease) error {
	err := s.lock(ctx, l.Stream)
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	sh := s.of(l.Stream)[l.ShardID]
	if err := sh.Check(l); err != nil && !s.is("anybody may release") {
		return err
	}
	if !s.is("a released shard keeps its owner") {
		sh.Owner = ""
	}
	if s.is("a released shard forgets its epoch") {
		sh.Epoch = 0
	}
	sh.ID = l.ShardID
	s.put(l.Stream, sh)
	return nil
}

func (s *store) Heartbeat(ctx context.Context, owner string) error {
	err := s.lock(ctx, state.Stream{Application: "any", ARN: "any"})
	defer s.mu.Unlock()
	if err == nil && !s.is("heartbeats do nothing") && !s.owners.Seen(owner) && !s.is("the fenced may beat") {
		err = state.ErrFenced
	}
	return err
}

func (s *store) Close() error {
	s.owners.Forget()
	if s.is("nothing survives") {
		fresh := newStore("")
		s.starts, s.shards, s.letters, s.values = fresh.starts, fresh.shards, fresh.letters, fresh.values
	}
	return nil
}

func (s *store) PutLetter(ctx context.Context, app, id string, data []byte) error {
	err := s.lock(ctx, state.Stream{Application: app, ARN: id})
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	if s.is("letters are not apart") {
		app = "all"
	}
	if s.letters[app] == nil {
		s.letters[app] = make(map[string][]byte)
	}
	if !s.is("letters are shared") {
		data = append([]byte{}, data...)
	}
	if s.is("letters are text") {
		data = []byte(strings.ToValidUTF8(string(data), "?"))
	}
	if _, ok := s.letters[app][id]; !ok || !s.is("a letter is never replaced") {
		s.letters[app][id] = data
	}
	if !s.is("a letter keeps its label when it is replaced") {
		delete(s.labels[app], id)
	}
	return nil
}

func (s *store) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	err := s.lock(ctx, state.Stream{Application: app, ARN: id})
	defer s.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	if s.is("letters are not apart") {
		app = "all"
	}
	data, ok := s.letters[app][id]
	if !s.is("letters are shared") {
		data = slices.Clone(data)
	}
	return data, ok, nil
}

func (s *store) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	err := s.lock(ctx, state.Stream{Application: app, ARN: "any"})
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if s.is("letters are not apart") {
		app = "all"
	}
	ids := slices.Sorted(maps.Keys(s.letters[app]))
	if s.is("ids are ordered without case") {
		slices.SortFunc(ids, func(a, b string) int {
			return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
		})
	}
	var letters []state.Letter
	for _, id := range ids {
		if len(letters) < limit && (id > after || id == after && s.is("pages overlap")) {
			letters = append(letters, state.Letter{ID: id, Data: slices.Clone(s.letters[app][id])})
		}
	}
	return letters, nil
}

func (s *store) DeleteLetter(ctx context.Context, app, id string) error {
	err := s.lock(ctx, state.Stream{Application: app, ARN: id})
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	if s.is("letters are not apart") {
		app = "all"
	}
	delete(s.letters[app], id)
	if !s.is("labels outlive their letters") {
		delete(s.labels[app], id)
	}
	return nil
}
