package daemon

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A disk that is full is logged once, and then each minute, with a count.
func TestErrorsThatRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := newLogger(Options{LogFormat: "text", LogLevel: "info"}, &log)
		for i := range 150 {
			logger.Error("positions were not stored and will be again", "shards", i, "error", errors.New(strings.Repeat("no space ", i)))
			logger.Error("call failed", "table", []string{"orders", "users"}[i%2])
			logger.Warn("not ready")
			time.Sleep(time.Second)
		}
		for what, want := range map[string]int{
			"level=ERROR msg=\"positions": 3, "shards=0 error=\"\"\n": 1, "shards=60 ": 1, "shards=120 ": 1, "repeated=59\n": 2,
			"table=orders": 3, "table=users": 3, "level=WARN": 150,
		} {
			if got := strings.Count(log.String(), what); got != want {
				t.Errorf("%q is there %d times, want %d", what, got, want)
			}
		}
		log.Reset()
		time.Sleep(time.Hour)
		logger.With("route", "a").Error("positions were not stored and will be again")
		logger.With("route", "b").Error("positions were not stored and will be again")
		if got := strings.Count(log.String(), "\n"); got != 2 {
			t.Errorf("%d lines of two routes:\n%s", got, log.String())
		}
	})
}

// An application's own errors are its effects: each is written.
func TestErrorsOfTheApplicationAreAllWritten(t *testing.T) {
	var log bytes.Buffer
	logger := everyLine(newLogger(Options{LogFormat: "text", LogLevel: "info"}, &log))
	for i := range 3 {
		logger.Error("an order is lost", "route", "audit", "key", i, "sequence", i, "error", (*plainError)(nil))
	}
	if got := strings.Count(log.String(), "an order is lost"); got != 3 {
		t.Errorf("%d lines:\n%s", got, log.String())
	}
}

// While dead letters cannot be stored, a queue does not log each message. Errors
// of many kinds do not fill the memory.
func TestErrorsOfManyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := newLogger(Options{LogFormat: "text", LogLevel: "info"}, &log)
		for i := range 100 {
			logger.Error("dead letters failed: the message comes again", "route", "r", "message", i, "received", i%7, "deadLetterError", "full")
		}
		if got := strings.Count(log.String(), "\n"); got != 1 {
			t.Errorf("%d lines", got)
		}
		for i := range 5000 {
			logger.Error("its dead letter cannot be deleted", "deadLetter", i)
		}
		if got := strings.Count(log.String(), "deadLetter="); got != 5000 {
			t.Errorf("%d lines of 5000 letters", got)
		}
		if n := len(logger.Handler().(*repeats).recent.byKey); n > maxRecentErrors {
			t.Errorf("%d kinds are remembered", n)
		}
	})
}

// A line names table and shard. An ARN and the words of the SDK make it long.
func TestShortLines(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var log bytes.Buffer
		logger := newLogger(Options{LogFormat: format, LogLevel: "info"}, &log)
		logger.Warn("call failed", "table", "orders", "stream", "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-11-23T14:53:31.000", "shards", 3,
			"error", errors.New("operation error DynamoDB Streams: GetRecords, https response error StatusCode: 400, RequestID: ABC123, api error ExpiredTokenException: The security token included in the request is expired"))
		for _, want := range []string{"orders/stream/2026-11-23T14:53:31.000", "GetRecords: ExpiredTokenException: The security token", "aws sso login"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %q in %s", want, log.String())
			}
		}
		for _, not := range []string{"arn:aws", "StatusCode", "ABC123"} {
			if strings.Contains(log.String(), not) {
				t.Errorf("%q is in %s", not, log.String())
			}
		}
	}
}
