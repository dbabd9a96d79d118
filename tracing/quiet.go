package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
)

// quiet sends OpenTelemetry's errors to logger. Its own log is discarded, because it
// has the values of malformed variables, such as a header with a key.
func quiet(logger *slog.Logger) {
	logger = cmp.Or(logger, slog.Default())
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.Error("traces cannot be exported as asked: look at the collector and the variables OTEL_…", "error", reason(err))
	}))
}

var answered = regexp.MustCompile(`: (\d{3} [A-Z][A-Za-z -]*) \(body: |rpc error: code = (\w+)`)

// reason shortens err. It leaves out values of variables, URLs, and the collector's answer:
// they may be secret.
func reason(err error) error {
	if err == nil {
		return nil
	}
	for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, ended) {
			return ended
		}
	}
	if at, ok := errors.AsType[*url.Error](err); ok && at.Op != "parse" {
		return at.Err
	}
	if m := answered.FindStringSubmatch(err.Error()); m != nil {
		return errors.New("the collector answers " + m[1] + m[2])
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return fmt.Errorf("%T", err)
}
