package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/statestore"
)

func validateCommand(c *cli) *cobra.Command {
	var connect, asJSON bool
	var sample string
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration and list its routes",
		Long: `Check the configuration file and list its routes. The command reports every mistake
at once, with file:line:column, and calls no service.

--connect also asks sinks, tables and the state table, and creates the file's indices.
--sample tries the conditions with records, and finds comparisons of a number with a
text.`,
		Example: `  sluice validate --config orders.yaml --connect
  sluice tail orders --from TRIM_HORIZON --limit 100 --json | sluice validate --sample -`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := c.top(nil); err != nil {
				return err
			}
			path, _ := c.path()
			v := validation{File: path}
			recs, err := c.readSample(sample)
			if err != nil {
				return err
			}
			err = stopped(cmd.Context(), c.validate(cmd.Context(), &v, connect, recs), "all were asked")
			if errors.As(err, new(*noFileError)) {
				return err
			}
			v.add(err)
			if asJSON {
				err = printJSON(c.stdout, v)
			} else {
				err = v.print(c.stdout, c.stderr)
			}
			if err == nil && !v.Valid {
				err = errMistakes
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&connect, "connect", false, "also ask sinks, tables and the state table")
	cmd.Flags().StringVar(&sample, "sample", "", "try conditions with the records of this `file`; - is standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

// validation is the output for a file.
type validation struct {
	File     string        `json:"file"`
	Valid    bool          `json:"valid"`
	Name     string        `json:"name,omitempty"`
	Tables   []string      `json:"tables,omitempty"`
	Queues   []string      `json:"queues,omitempty"`
	Accounts []string      `json:"accounts,omitempty"` // what each aws of the file sets
	Routes   []listedRoute `json:"routes,omitempty"`
	Mistakes []mistake     `json:"mistakes,omitempty"`
	Warnings []mistake     `json:"warnings,omitempty"` // of what sluice run does without
	sound    bool          // the file itself is valid: mistakes are elsewhere
}

type listedRoute struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	On      []string `json:"on,omitempty"`
	Filters []string `json:"filters,omitempty"`
}

// mistake is a config.Error, or any other error without a place.
type mistake struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Field   string `json:"field,omitempty"`
	Problem string `json:"problem"`
	text    string
}

func (c *cli) validate(ctx context.Context, v *validation, connect bool, sample []*sluice.Record) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	app, err := c.buildToCheck(ctx, cfg)
	if err := errors.Join(err, c.checkState(cfg)); err != nil {
		return err
	}
	var doubts []string
	if len(sample) > 0 {
		if doubts, err = checkSample(cfg, app, sample); err != nil {
			return err
		}
	}
	v.sound = true
	if connect {
		connected, err := c.build(ctx, cfg, config.Setup{Check: true})
		if err != nil { // all that is missing is reported together
			if _, _, noAWS := c.accounts(ctx, cfg); noAWS == nil {
				err = errors.Join(err, c.connect(ctx, cfg, app))
			}
			return err
		}
		app = connected
	}
	v.Name, v.Tables, v.Queues = cfg.Name, app.Tables, app.Queues
	v.Routes = mapped(app.Routes, func(b config.BuiltRoute) listedRoute { // also those of the queues of cascades
		return listedRoute{Name: b.Name, Kind: b.Kind, On: b.Written.On, Filters: filters(b.Written)}
	})
	for _, at := range cfg.Accounts() {
		if text := at.String(); text != "" {
			v.Accounts = append(v.Accounts, text)
		}
	}
	v.warn(ctx, app, connect)
	v.Warnings = append(v.Warnings, mapped(doubts, func(doubt string) mistake { return mistake{Problem: doubt, text: doubt} })...)
	if connect {
		return c.connect(ctx, cfg, app)
	}
	return nil
}

// buildToCheck builds an application that will not run. A machine without AWS
// calls, such as one that tests changes, needs no Region.
func (c *cli) buildToCheck(ctx context.Context, cfg *config.Config) (*config.App, error) {
	offline := *cfg
	offline.AWS.Profile = "" // it may be on other machines alone
	services, all, err := c.accountsMaybe(ctx, &offline)
	if err != nil {
		return nil, err
	}
	return cfg.Build(ctx, config.Setup{Logger: c.logger(), Accounts: all, AWS: func(service string) aws.Config {
		one := services(service)
		one.Region = cmp.Or(one.Region, "us-east-1")
		return one
	}})
}

// add adds a mistake. The file is valid if there is none.
func (v *validation) add(err error) {
	v.Valid = err == nil
	v.tell(err)
}

// tell lists each mistake that was joined.
func (v *validation) tell(err error) {
	if err == nil {
		return
	}
	var all config.Errors
	placed := errors.As(err, &all)
	joined, ok := err.(interface{ Unwrap() []error })
	if one, ok := err.(*config.Error); ok {
		all, placed = config.Errors{one}, true
	}
	switch {
	case ok && err.Error() != all.Error() && err.Error() == errors.Join(joined.Unwrap()...).Error(): // no text of its own
		for _, one := range joined.Unwrap() {
			v.tell(one)
		}
	case placed:
		for _, e := range all {
			v.Mistakes = append(v.Mistakes, mistake{Line: e.Line, Column: e.Column, Field: e.Field, Problem: awserror.Plain(e.Problem), text: awserror.Plain(e.Error())})
		}
	default:
		v.Mistakes = append(v.Mistakes, mistake{Problem: awserror.Plain(err.Error()), text: awserror.Plain(err.Error())})
	}
}

// filters says which of a route's filters are set, as the file has them.
func filters(r config.Route) []string {
	var list []string
	add := func(name string, values ...string) {
		if text := strings.Join(values, ", "); text != "" {
			list = append(list, name+": "+text)
		}
	}
	add("when", r.When)
	add("changed", r.Changed...)
	add("changedIgnoring", r.ChangedIgnoring...)
	add("ttl", r.TTL)
	add("regions", r.Regions...)
	if r.Project != nil {
		add("only", r.Project.Only)
	}
	return list
}

func (v *validation) print(stdout, stderr io.Writer) error {
	if len(v.Routes) > 0 {
		t := &table{heads: []string{"ROUTE", "KIND", "ON", "FILTERS"}}
		for _, r := range v.Routes {
			t.row(r.Name, r.Kind, strings.Join(r.On, " "), strings.Join(r.Filters, "; "))
		}
		if err := t.print(stdout, stderr, "--json has all of it"); err != nil {
			return err
		}
	}
	for _, text := range v.Accounts {
		fmt.Fprintln(stdout, text)
	}
	for _, m := range v.Mistakes {
		fmt.Fprintln(stderr, m.text)
	}
	for _, m := range v.Warnings {
		fmt.Fprintln(stderr, "warning: "+m.text)
	}
	switch n := len(v.Mistakes); {
	case v.Valid:
		fmt.Fprintf(stdout, "%s is valid: %s%s%s\n", v.File, plural(len(v.Routes), "route", "routes"), named("table", v.Tables), named("queue", v.Queues))
	case v.sound && n == 1:
		fmt.Fprintf(stderr, "%s has no mistake, but a thing that it needs is not there\n", v.File)
	case v.sound:
		fmt.Fprintf(stderr, "%s has no mistake, but %d things that it needs are not there\n", v.File, n)
	default:
		fmt.Fprintf(stderr, "%s has %s\n", v.File, plural(n, "mistake", "mistakes"))
	}
	return nil
}

// named lists what of a kind there is, behind something else.
func named(kind string, names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return ", " + kind + " " + names[0]
	}
	return ", " + kind + "s " + strings.Join(names, ", ")
}

// checkState returns the mistakes for which sluice run refuses the place of the state.
func (c *cli) checkState(cfg *config.Config) error {
	place := c.statePath("", cfg)
	if err := statestore.Check(place); err != nil {
		return c.stateError(cfg, err)
	}
	err := daemon.CheckPark(cmp.Or(c.env(deadLetterEnv), cfg.DeadLetter.Park), place)
	switch {
	case err == nil:
		return nil
	case c.env(deadLetterEnv) != "":
		return fmt.Errorf("%s: %w", deadLetterEnv, err)
	}
	return cfg.FieldError("deadLetter.park", err)
}

const deadLetterEnv = "SLUICE_DEAD_LETTER"

// stateError adds to err where the place of the state is set.
func (c *cli) stateError(cfg *config.Config, err error) error {
	if c.env(stateEnv) != "" {
		return fmt.Errorf("%s: %w", stateEnv, err)
	}
	return cfg.FieldError("daemon.state", err)
}

// connectState looks whether the state table is there, can be read and is no half copy.
func (c *cli) connectState(ctx context.Context, cfg *config.Config) error {
	place := c.statePath("", cfg)
	if _, ok := statestore.Table(place); !ok {
		return nil
	}
	store, err := c.openState(ctx, place, cfg, 0)
	if err == nil {
		err = errors.Join(statestore.Ready(ctx, store, c.applicationName("", cfg)), store.Close())
	}
	if err != nil {
		return c.stateError(cfg, err)
	}
	return nil
}

// connect looks whether the tables are there and have streams, with views that
// hold what the routes need, and asks the state table.
func (c *cli) connect(ctx context.Context, cfg *config.Config, app *config.App) error {
	services, all, err := c.accounts(ctx, cfg)
	if err != nil {
		return err
	}
	var errs []error
	if at := cfg.SourceAccess(); len(app.Tables) == 0 && at.Role.ARN != "" { // it is for queues
		_, err := all.Within(services("sts"), at).Credentials.Retrieve(ctx)
		errs = append(errs, err)
	}
	for i, table := range app.Tables {
		if err := checkStream(ctx, services("dynamodb"), table, app.Router.Routes()); err != nil {
			errs = append(errs, cfg.TableError(i, err))
		}
	}
	return errors.Join(append(errs, c.connectState(ctx, cfg))...)
}

// readSample reads the records of --sample; none without the flag.
func (c *cli) readSample(name string) ([]*sluice.Record, error) {
	if name == "" {
		return nil, nil
	}
	in, err := c.input(name)
	if err != nil {
		return nil, fmt.Errorf("--sample: %w", err)
	}
	defer in.Close()
	var recs []*sluice.Record
	for rec, err := range readRecords(in) {
		if err != nil {
			return nil, fmt.Errorf("--sample: %w", err)
		}
		recs = append(recs, rec)
	}
	return recs, nil
}

// checkSample tries the conditions of each route with the records that its
// patterns match. It returns a doubt for each route with conditions that it tried with
// no record, or that no record passes.
func checkSample(cfg *config.Config, app *config.App, recs []*sluice.Record) (doubts []string, err error) {
	byRoute, taken := map[string][]*sluice.Record{}, map[string]int{}
	for _, rec := range recs {
		rec.Table = cmp.Or(rec.Table, onlyTable(app))
		verdicts, err := app.Router.Explain(rec)
		if err != nil {
			return nil, fmt.Errorf("--sample: %w", err)
		}
		for _, v := range verdicts {
			if !v.Pattern {
				byRoute[v.Route.Name] = append(byRoute[v.Route.Name], rec)
			}
			if v.Takes {
				taken[v.Route.Name]++
			}
		}
	}
	var errs []error
	for _, r := range cfg.Routes {
		if err := cfg.CheckSample(r.Name, byRoute[r.Name]); err != nil {
			errs = append(errs, err)
		}
		switch tried := len(byRoute[r.Name]); {
		case tried == 0 && (r.When != "" || r.Project != nil && r.Project.Only != ""):
			doubts = append(doubts, fmt.Sprintf("route %s: its conditions were not tried: no record of the sample has its type and event", r.Name))
		case tried > 0 && taken[r.Name] == 0 && r.When != "":
			doubts = append(doubts, fmt.Sprintf("route %s takes none of the %s of the sample that have its type and event: see that the names in when are right: %s", r.Name, plural(tried, "record", "records"), r.When))
		}
	}
	return doubts, errors.Join(errs...)
}
