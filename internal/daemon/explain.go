package daemon

import (
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

// explained says why a command or a daemon failed, and what to do when credentials
// are not accepted: no permission and no endpoint helps then.
func explained(err error) error {
	if err == nil {
		return nil
	}
	renew(err)
	return &plainError{awserror.Plain(err.Error()), err}
}

// renew has the errors of streams, which the poller joins, say what to do about credentials.
func renew(err error) {
	if stream, ok := err.(*poller.StreamError); ok {
		if do := awserror.Credentials(stream.Err); do != "" {
			stream.Do = strings.ToUpper(do[:1]) + do[1:]
		}
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		renew(err.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			renew(one)
		}
	}
}

// plain is the text of an error in the words of awserror, "" of nil.
func plain(err error) string { return awserror.Plain(text(err)) }
