package main

import (
	"errors"

	"github.com/sluicehq/sluice/internal/snapshot"
)

const mostSegments = 256 // that a scan takes

// scanFlags says which flags of a scan are wrong, before anything is opened: by
// their names, which the scan does not know.
func scanFlags(o snapshot.ScanOptions) error {
	var errs []error
	if o.Segments < 0 || o.Segments > mostSegments {
		errs = append(errs, usage("--segments: %d is not 1 to %d, or 0 for the default", o.Segments, mostSegments))
	}
	if !(o.ReadUnits >= 0) { // also refuses NaN
		errs = append(errs, usage("--read-units: %v is not above 0, or 0 for the default", o.ReadUnits))
	}
	if !(o.Share >= 0 && o.Share <= 1) {
		errs = append(errs, usage("--share: %v is not above 0 and at most 1, or 0 for the default", o.Share))
	}
	return errors.Join(errs...)
}
