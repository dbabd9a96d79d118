package cascade

import (
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// failures are the deletes of one run that failed.
type failures struct {
	rows      int
	permanent int
	first     error       // the first of those that may go away
	firstBad  error       // the first that is permanent
	key       sluice.Item // of the row of first, or else of firstBad

	// inARow are rows whose delete failed since one succeeded, for reasons
	// that may go away.
	inARow int
}

// tooMany is how many deletes fail in a row before a run gives up: by then it
// is no matter of single rows.
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

// err says how many deletes failed and where. It is permanent only if all
// failures are: its text alone mentions those that are beside others.
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

// join makes one error of those of several child kinds. It is permanent only if
// all of them are, since a record is parked for a permanent one.
func join(errs []error) error {
	var out error
	permanent := true
	for _, err := range errs {
		switch {
		case out == nil:
			out = err
		case permanent && !sluice.IsPermanent(err):
			out = fmt.Errorf("%w; and: %v", err, out) //nolint:errorlint // what is permanent must not be found in it
		default:
			out = fmt.Errorf("%w; and: %v", out, err) //nolint:errorlint // as above
		}
		permanent = permanent && sluice.IsPermanent(err)
	}
	return out
}
