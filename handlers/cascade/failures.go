package cascade

import (
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// failures are the failed deletes of one run.
type failures struct {
	rows      int
	permanent int
	first     error       // the first that may be temporary
	firstBad  error       // the first that is permanent
	key       sluice.Item // of the row of first, or else of firstBad

	// inARow counts the rows that failed since the last success for reasons
	// that may be temporary.
	inARow int
}

// tooMany is the number of consecutive failures after which a run gives up: they
// are not about single rows.
const tooMany = 1000

func (f *failures) add(key sluice.Item, err error) {
	f.rows++
	if sluice.IsPermanent(err) {
		if f.permanent++; f.firstBad == nil {
			f.firstBad = err
			if f.first == nil {
				f.key = key
			}
		}
		return
	}
	f.inARow++
	if f.first == nil {
		f.first, f.key = err, key
	}
}

// err returns the number and place of failures. It is permanent only if all
// failures are; otherwise its text alone mentions permanent ones.
func (f *failures) err(t *target, deleted int) error {
	if f.rows == 0 {
		return nil
	}
	where := fmt.Sprintf("cascade of %s: %d of %d deletes in table %s failed", keyhash.Item(t.parent), f.rows, f.rows+deleted, t.child.Table)
	if f.first == nil {
		return fmt.Errorf("%s, the first of %s: %w", where, keyhash.Item(f.key), f.firstBad)
	}
	if f.permanent > 0 {
		where += fmt.Sprintf(", %d of them for good (the first: %v)", f.permanent, f.firstBad)
	}
	return fmt.Errorf("%s, the first that may succeed later of %s: %w", where, keyhash.Item(f.key), f.first)
}

// join joins the errors of several child kinds. The result is permanent only if
// all are, because a record is parked for a permanent error.
func join(errs []error) error {
	var out error
	permanent := true
	for _, err := range errs {
		switch {
		case out == nil:
			out = err
		case permanent && !sluice.IsPermanent(err):
			out = fmt.Errorf("%w; and: %v", err, out) //nolint:errorlint // err must not be found as permanent
		default:
			out = fmt.Errorf("%w; and: %v", out, err) //nolint:errorlint // as above
		}
		permanent = permanent && sluice.IsPermanent(err)
	}
	return out
}
