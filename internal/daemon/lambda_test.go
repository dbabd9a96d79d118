package daemon

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

// A function knows its tables as the daemon does, and starts no more than it
// does when there is nothing to do.
func TestLambdaStart(t *testing.T) {
	noAWS(t)
	stop := errors.New("seen enough")
	const stream = "arn:aws:dynamodb:us-east-1:1:table/c/stream/2026-01-01T00:00:00.000"
	for _, tt := range []struct {
		name   string
		tables string
		want   string
	}{
		{"application", "", "a b"},
		{"environment", "c, d", "c d"},
		{"stream", stream, "c"},
	} {
		got := ""
		app := App{Name: "shop", Tables: []string{"a", "b"}, Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
			got = strings.Join(s.Tables, " ")
			if !s.Lambda || s.Metrics == nil {
				t.Errorf("%s: not under Lambda, or without its metrics", tt.name)
			}
			return nil, stop
		}}
		expectExit(t, app, nil, map[string]string{"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:1", "SLUICE_TABLES": tt.tables}, 1, "shop: seen enough")
		if got != tt.want {
			t.Errorf("%s: tables %q, want %q", tt.name, got, tt.want)
		}
	}
	lambda := map[string]string{"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:1"}
	expectExit(t, App{Name: "shop"}, nil, lambda, 1, "App.Routes is nil")
	empty := App{Name: "shop", Routes: func(context.Context, Setup) (sluice.Matcher, error) { return router.New(), nil }}
	expectExit(t, empty, nil, lambda, 1, "there is no route")
}

// A mistake in the settings of dead letters ends the function's start.
func TestLambdaDeadLetters(t *testing.T) {
	noAWS(t)
	app := App{Name: "shop", Routes: func(context.Context, Setup) (sluice.Matcher, error) { return nil, errors.New("seen enough") }}
	queued := app
	queued.DeadLetter = DeadLetter{Queue: "letters", MaxAge: time.Hour, KeyFile: "no-such-file"}
	aged := app
	aged.DeadLetter.MaxAge = time.Hour
	for _, tt := range []struct {
		app  App
		env  map[string]string
		want string
	}{
		{app, map[string]string{"SLUICE_DEAD_LETTER_QUEUE": "letters"}, "shop: seen enough"},
		{app, map[string]string{"SLUICE_DEAD_LETTER_MAX_AGE": "15m"}, "there is no queue to park them in: set SLUICE_DEAD_LETTER_QUEUE"},
		{app, map[string]string{"SLUICE_DEAD_LETTER_MAX_AGE": "15"}, `SLUICE_DEAD_LETTER_MAX_AGE="15": want 1s or longer`},
		{app, map[string]string{"SLUICE_DEAD_LETTER_QUEUE": "letters", "SLUICE_DEAD_LETTER": "item"}, "SLUICE_DEAD_LETTER is item"},
		{app, map[string]string{"SLUICE_DEAD_LETTER_QUEUE": "letters", "SLUICE_LETTER_KEY": "short"}, "SLUICE_LETTER_KEY"},
		{aged, nil, "there is no queue to park them in"},
		{aged, map[string]string{"SLUICE_DEAD_LETTER_QUEUE": "letters"}, "shop: seen enough"},
		{queued, nil, "no-such-file"},
		{queued, map[string]string{"SLUICE_LETTER_KEY": "0123456789abcdef0123456789abcdef"}, "shop: seen enough"},
	} {
		env := map[string]string{"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:1", "AWS_REGION": "us-east-1"}
		maps.Copy(env, tt.env)
		expectExit(t, tt.app, nil, env, 1, tt.want)
	}
}
