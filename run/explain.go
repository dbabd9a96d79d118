package run

import (
	"errors"
	"strings"

	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/sources/poller"
)

// plainError is an error in the words of awserror.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// explained says why a daemon could not start, and what to do when credentials
// are not accepted: no permission and no endpoint helps then.
func explained(err error) error {
	if err == nil {
		return nil
	}
	if stream := (*poller.StreamError)(nil); errors.As(err, &stream) {
		if do := awserror.Credentials(stream.Err); do != "" {
			stream.Do = strings.ToUpper(do[:1]) + do[1:]
		}
	}
	return &plainError{awserror.Plain(err.Error()), err}
}

// plain is the text of an error in the words of awserror, "" of nil.
func plain(err error) string { return awserror.Plain(text(err)) }
