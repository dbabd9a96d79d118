package awserror

import "errors"

// CredentialsError is the error of a role that was not assumed, or of a profile
// without credentials. [Of] says what its cause means.
type CredentialsError struct {
	What string // the place, then "cannot assume role …" or "cannot use profile …"
	Err  error
	Do   string // what helps; "" if unknown
}

func (e *CredentialsError) Error() string {
	text := e.What + ": " + e.Err.Error()
	if e.Do != "" {
		text += "; " + e.Do
	}
	return text
}

// Is says what errors.Is finds in the cause. There is no Unwrap: an answer of the service
// of credentials is none of the service that was called. Its throttling or "not found"
// says nothing of a stream or a queue.
func (e *CredentialsError) Is(target error) bool { return errors.Is(e.Err, target) }
