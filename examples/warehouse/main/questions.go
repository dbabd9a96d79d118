package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/warehouse"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// question is a read of the warehouse. It is answered by lines of JSON.
type question struct {
	args   string // words in brackets may be left out
	such   string // arguments of an example
	does   string
	pages  bool // it takes --limit and --after
	answer func(ctx context.Context, w *warehouse.Warehouse, a asked) (rows []any, next string, err error)
}

// asked is what a question is asked with.
type asked struct {
	args  []string
	limit int
	after string
}

// arg is an argument, "" if it was left out.
func (a asked) arg(i int) string {
	if i >= len(a.args) {
		return ""
	}
	return a.args[i]
}

var questions = map[string]question{
	"packages": {"", "--limit 10", "all packages, in pages", true, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		all, next, err := w.Packages(ctx, a.limit, a.after)
		return lines(all), next, err
	}},
	"package": {"NAME", "email", "a package", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		return oneOf(w.Package(ctx, a.arg(0)))
	}},
	"versions": {"NAME [FROM] [TO]", "email 1.0.0 2.9.9", "the versions of a package, the oldest first", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		all, err := w.Versions(ctx, a.arg(0), a.arg(1), a.arg(2))
		return lines(all), "", err
	}},
	"dependents": {"NAME", "button", "the packages that depend on one", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		all, err := w.Dependents(ctx, a.arg(0))
		return lines(all), "", err
	}},
	"dependent-of": {"PKG", "email", "the first dependency of a package", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		of, err := w.DependentOf(ctx, a.arg(0))
		return oneOf(of, of != "", err)
	}},
	"builds": {"NAME ENV VERSION", "email prod 2.1", "the builds of a version, by locale", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		all, err := w.Builds(ctx, a.arg(0), a.arg(1), a.arg(2))
		return lines(all), "", err
	}},
	"heads": {"NAME ENV", "email prod", "the largest build of a package in each locale", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		all, err := w.Heads(ctx, a.arg(0), a.arg(1))
		return lines(all), "", err
	}},
	"file": {"FINGERPRINT", "d41d8cd98f00b204", "a file of a build", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		return oneOf(w.BuildFile(ctx, a.arg(0)))
	}},
	"line": {"PKG VERSION", "email 2.1.0", "a release line with its dependents", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		return oneOf(w.ReleaseLine(ctx, a.arg(0), a.arg(1)))
	}},
	"line-head": {"PKG", "email", "the newest release line of a package", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		return oneOf(w.ReleaseLineHead(ctx, a.arg(0)))
	}},
	"status": {"PKG ENV VERSION", "whatever dev 1.0.0", "the status of a build", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		return oneOf(w.Status(ctx, a.arg(0), a.arg(1), a.arg(2)))
	}},
	"head": {"PKG ENV", "whatever dev", "the version that was queued last", false, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		return oneOf(w.StatusHead(ctx, a.arg(0), a.arg(1)))
	}},
	"events": {"PKG ENV VERSION", "whatever dev 1.0.0 --limit 2", "the events of a build by time, in pages", true, func(ctx context.Context, w *warehouse.Warehouse, a asked) ([]any, string, error) {
		all, next, err := w.Events(ctx, a.arg(0), a.arg(1), a.arg(2), a.limit, a.after)
		return lines(all), next, err
	}},
}

// ask returns the command of a question.
func ask(name string) func(context.Context, kit.Call) error {
	q := questions[name]
	return func(ctx context.Context, c kit.Call) error {
		a, err := q.read(name, c.Args)
		if err != nil {
			return err
		}
		_, cfg, err := kit.AWS(ctx, c.Env)
		if err != nil {
			return err
		}
		store, err := dynamodb.New(cfg, dynamodb.Options{})
		if err != nil {
			return err
		}
		w := warehouse.New(warehouse.Deps{Store: store, Scan: warehouse.NewScan(cfg), Prefix: tablePrefix(c.Env)})
		rows, next, err := q.answer(ctx, w, a)
		if err != nil {
			return err
		}
		if len(rows) == 0 && a.after == "" && next == "" {
			return fmt.Errorf("nothing found for %s: check the arguments, and that the daemon has handled the changes", strings.TrimSpace(name+" "+strings.Join(a.args, " ")))
		}
		for _, row := range rows {
			if err := print(c.Out, row); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		return print(c.Out, map[string]string{"next": next})
	}
}

// print writes a value as a line of JSON.
func print(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// usage says how a question is asked.
func (q question) usage(name string) string {
	how := strings.TrimSpace(name + " " + q.args)
	if q.pages {
		how += " [--limit N] [--after NEXT]"
	}
	return how
}

// read reads the arguments of a question.
func (q question) read(name string, args []string) (a asked, err error) {
	how := "want " + q.usage(name) + ", such as " + name + " " + q.such
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if q.pages {
		fs.IntVar(&a.limit, "limit", 100, "")
		fs.StringVar(&a.after, "after", "", "")
	}
	if err := fs.Parse(args); err != nil {
		return a, kit.Usage("%v: %s", err, how)
	}
	if a.limit < 0 || q.pages && a.limit == 0 {
		return a, kit.Usage("--limit is %d, want 1 or more: %s", a.limit, how)
	}
	a.args = fs.Args()
	most := len(strings.Fields(q.args))
	least := most - strings.Count(q.args, "[")
	if n := len(a.args); n > most || n < least {
		return a, kit.Usage("wrong number of arguments (%d): %s", n, how)
	}
	if slices.Contains(a.args[:least], "") {
		return a, kit.Usage("an argument is empty: %s", how)
	}
	return a, nil
}

func lines[T any](all []T) []any {
	rows := make([]any, len(all))
	for i, v := range all {
		rows[i] = v
	}
	return rows
}

// oneOf is the answer to what asks for one item.
func oneOf[T any](v T, found bool, err error) ([]any, string, error) {
	if err != nil || !found {
		return nil, "", err
	}
	return []any{v}, "", nil
}
