package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/tally"
)

// An application gets everything that the daemon has for it, but Accounts: those are of a
// file. A program makes configurations of other accounts by itself.
func TestSetupIsWhole(t *testing.T) {
	var given daemon.Setup
	from := reflect.ValueOf(&given).Elem()
	for i := range from.NumField() {
		if f := from.Field(i); f.CanSet() {
			f.Set(filled(f.Type()))
		}
	}
	setup := setupOf(given)
	to := reflect.ValueOf(setup)
	exported := 0
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		if !from.Type().Field(i).IsExported() || name == "Accounts" {
			continue
		}
		exported++
		if f := to.FieldByName(name); !f.IsValid() || f.IsZero() {
			t.Errorf("Setup.%s: want what the daemon gives", name)
		}
	}
	if exported == 0 || setup.check == nil {
		t.Errorf("%d fields, check is nil: %v", exported, setup.check == nil)
	}
	Setup{}.Check("a queue", func(context.Context) error { return nil }) // as tests of an application make one
}

// filled returns a value of typ that is not zero.
func filled(typ reflect.Type) reflect.Value {
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(typ, 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
	case reflect.Interface: // of a Meter
		v.Set(reflect.ValueOf(new(tally.Tally)))
	case reflect.Func:
		v.Set(reflect.MakeFunc(typ, func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Struct:
		for i := range typ.NumField() {
			v.Field(i).Set(filled(typ.Field(i).Type))
		}
	}
	return v
}

// The daemon gets the whole application.
func TestRunTakesTheApplication(t *testing.T) {
	var stderr strings.Builder
	called := errors.New("called")
	app := App{Name: "shop", Tables: []string{"orders"}, Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		return nil, fmt.Errorf("%w for %v", called, s.Tables)
	}}
	args := []string{"--state", t.TempDir() + "/state.db", "--listen", "off"}
	env := func(string) string { return "" }
	t.Setenv("AWS_REGION", "us-east-1")
	if exit := Run(t.Context(), app, args, env, &stderr, &stderr); exit != 1 || !strings.Contains(stderr.String(), "shop: called for [orders]") {
		t.Errorf("exit code %d: %s", exit, stderr.String())
	}
	stderr.Reset()
	app.Routes = nil
	if exit := Run(t.Context(), app, args, env, &stderr, &stderr); exit != 1 || !strings.Contains(stderr.String(), "App.Routes is nil") {
		t.Errorf("exit code %d without routes: %s", exit, stderr.String())
	}
}

func TestExit(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
		want string
	}{
		{nil, 0, ""},
		{errors.New("no cluster"), 1, "shop: no cluster\n"},
	} {
		var stderr strings.Builder
		if code := Exit(tt.err, "shop", &stderr); code != tt.code || stderr.String() != tt.want {
			t.Errorf("%v: exit code %d and %q, want %d and %q", tt.err, code, stderr.String(), tt.code, tt.want)
		}
	}
}
