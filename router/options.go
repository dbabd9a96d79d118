package router

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Option configures one route or, given to [New], every route of a router.
type Option func(*config)

// config collects the options of a route.
type config struct {
	*route
	resolver   *Resolver // of the router; nil: the options are a route's own
	middleware []sluice.Middleware
	onTTL      string // the TTL filter already given
	readsImage bool   // a filter reads the image that tells a record's type
	errs       []error
}

func (c *config) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// filter adds a filter under the name of its option.
func (c *config) filter(name string, pass func(*sluice.Record) bool) {
	c.filters, c.filtered = append(c.filters, pass), append(c.filtered, name)
}

// TypeFrom sets the resolver of record types (default [Attribute]("entityType")).
// It is an option of [New].
func TypeFrom(rs Resolver) Option {
	return func(c *config) {
		switch {
		case c.resolver == nil:
			c.fail("TypeFrom: all routes of a router have the same resolver: give it to New")
		case rs.kind == noResolver:
			c.fail("TypeFrom was given the zero Resolver; make one with Attribute, KeyPattern, Table, Func, ByTable or Chain")
		default:
			*c.resolver = rs
		}
	}
}

// Name sets the route's name (default: its patterns, joined with commas). Names
// are unique in a router and appear in metrics, dead letters and logs.
func Name(name string) Option {
	return func(c *config) {
		if c.resolver != nil {
			c.fail("Name(%q): every route has a name of its own", name)
			return
		}
		if name == "" || len(name) > 200 || !utf8.ValidString(name) ||
			strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			c.fail("Name(%q): want 1 to 200 bytes of UTF-8 without control characters", name)
			return
		}
		c.Name = name
	}
}

// limit sets a limit of the route. The format and its values describe the option and
// what it wants.
func limit(ok bool, set func(*sluice.Route), format string, a ...any) Option {
	return func(c *config) {
		if !ok {
			c.fail(format, a...)
		}
		set(&c.route.Route)
	}
}

// Attempts sets the least number of failures before a record is parked as poison
// (default 8); see [sluice.Route].
func Attempts(n int) Option {
	return limit(n >= 1, func(r *sluice.Route) { r.Attempts = n }, "Attempts(%d): want at least 1", n)
}

// PoisonAfter sets how long a record's item must fail, while its route succeeds
// for others, before the record may be parked as poison (default 10 min); see
// [sluice.Route].
func PoisonAfter(d time.Duration) Option {
	return limit(d > 0, func(r *sluice.Route) { r.PoisonAfter = d }, "PoisonAfter(%v): want more than 0", d)
}

// Backoff sets the delay before the first retry. The delay doubles up to max, with
// full jitter (default 100 ms and 30 s).
func Backoff(first, max time.Duration) Option {
	return limit(first > 0 && max >= first, func(r *sluice.Route) { r.Backoff, r.MaxBackoff = first, max },
		"Backoff(%v, %v): want 0 < first ≤ max", first, max)
}

// Timeout limits one call of the handler (default: none).
func Timeout(d time.Duration) Option {
	return limit(d > 0, func(r *sluice.Route) { r.Timeout = d }, "Timeout(%v): want more than 0", d)
}

// Concurrency limits concurrent calls of the handler in the process (default: only
// the flow's limit).
func Concurrency(n int) Option {
	return limit(n >= 1, func(r *sluice.Route) { r.Concurrency = n }, "Concurrency(%d): want at least 1", n)
}

// Rate limits the calls of the handler started per second in the process; burst of
// them may start at once (default: no limit).
func Rate(perSecond float64, burst int) Option {
	return limit(perSecond > 0 && burst >= 1, func(r *sluice.Route) { r.Rate, r.Burst = perSecond, burst },
		"Rate(%v, %d): want more than 0 a second and a burst of at least 1", perSecond, burst)
}

// MaxAge parks a failing record once it is older than d, whatever the state of
// the route (default: the flow's).
func MaxAge(d time.Duration) Option {
	return limit(d > 0, func(r *sluice.Route) { r.MaxAge = d }, "MaxAge(%v): want more than 0", d)
}

// Use wraps the route's handler. The first of mw is the outermost.
func Use(mw ...sluice.Middleware) Option {
	return func(c *config) { c.middleware = append(c.middleware, mw...) }
}

// Redrive lets the route receive redriven dead letters. Later changes of the same
// item may already be handled. Without Redrive the route refuses them.
func Redrive() Option { return func(c *config) { c.route.Redrive = true } }

// NeedsNew says that the handler reads the new image of inserts and modifications.
func NeedsNew() Option { return needs(item.NewImage) }

// NeedsOld says that the handler reads the old image of modifications and
// removals.
func NeedsOld() Option { return needs(item.OldImage) }

// NeedsBoth is NeedsNew and NeedsOld.
func NeedsBoth() Option { return needs(item.BothImages) }

func needs(v item.View) Option { return func(c *config) { c.route.reads |= v } }
