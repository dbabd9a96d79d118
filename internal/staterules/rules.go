// Package staterules has rules that the stores of package state share: valid names
// and values, and living owners.
package staterules

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// OwnerTimeout is how long an owner counts as living, in the stores of one
// process, after its last claim or heartbeat.
const OwnerTimeout = 10 * time.Second

// MaxValue is how many bytes a value has at most.
const MaxValue = 64 << 10

// MaxAhead is how many bytes a position's Ahead has at most.
const MaxAhead = 12 << 10

// Jobs is the ARN under which an application claims work that is not a shard of a
// table, as it claims shards. Stores neither list it as a stream nor share its claims
// out.
const Jobs = "jobs"

// Application says whether an application's name is missing.
func Application(app string) error {
	if app == "" {
		return errors.New("the application's name is empty: every application needs one, so that two can share a store")
	}
	return nil
}

// Shards says whether a shard's id is missing.
func Shards(ids []string) error {
	if slices.Contains(ids, "") {
		return errors.New("a shard id is empty")
	}
	return nil
}

// Claim says whether a claim's shard or owner is missing.
func Claim(shardID, owner string) error {
	if shardID == "" || owner == "" {
		return fmt.Errorf("claim of shard %q by owner %q: neither may be empty", shardID, owner)
	}
	return nil
}

// Letter says whether a letter's application or id is missing.
func Letter(app, id string) error {
	if app == "" || id == "" {
		return fmt.Errorf("dead letter %q of application %q: neither may be empty", id, app)
	}
	return nil
}

// Value returns the mistake in a value to store, or in its application or name.
func Value(app, name string, data []byte) error {
	if app == "" || name == "" {
		return fmt.Errorf("value %q of application %q: neither may be empty", name, app)
	}
	if len(data) > MaxValue {
		return fmt.Errorf("value %q of application %q has %d bytes: at most %d are kept", name, app, len(data), MaxValue)
	}
	return nil
}

// Presence is who was heard of within [OwnerTimeout]. The zero value is ready;
// its methods are safe for concurrent use.
type Presence struct {
	mu     sync.Mutex
	seen   map[string]time.Time
	fenced map[string]bool
}

// Seen says that owner lives now. It reports false if owner is fenced.
func (p *Presence) Seen(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fenced[owner] {
		return false
	}
	if p.seen == nil {
		p.seen = make(map[string]time.Time)
	}
	p.seen[owner] = time.Now()
	return true
}

// Living reports whether owner was heard of.
func (p *Presence) Living(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.living(owner)
}

func (p *Presence) living(owner string) bool {
	at, ok := p.seen[owner]
	return ok && time.Since(at) < OwnerTimeout
}

// Fence reports whether owner is silent. If so, it never lives again.
func (p *Presence) Fence(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.living(owner) {
		return false
	}
	if p.fenced == nil {
		p.fenced = make(map[string]bool)
	}
	p.fenced[owner] = true
	return true
}

// Forget forgets every owner, as the end of their process does.
func (p *Presence) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.fenced = nil, nil
}
