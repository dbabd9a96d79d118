package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/examples/manhunt/reflex"
	"github.com/sluicehq/sluice/item"
)

// program has the commands besides running. Each uses the first table of SLUICE_TABLES.
var program = kit.Program{
	Name:    "manhunt",
	Head:    "Commands, in place of flags; each has --help with an example:",
	Tail:    "Without a command:",
	OwnHelp: true,
	Commands: map[string]kit.Command{
		"create": {Usage: "create", Does: "make the tables that are not there: Manhunt's, and after it Reflex's if SLUICE_TABLES names two",
			Example: "SLUICE_TABLES=manhunt,reflex manhunt create", Run: by(create)},
		"open": {Usage: "open DOMAIN CONTACT [--id ID] [--metadata JSON]", Does: "open a search for a contact, and print its id",
			Example: `manhunt open d-1 c-1 --metadata '{"incident":"I-7","summary":"it burns"}'`, Run: by(open)},
		"answer": {Usage: "answer SEARCH STEP TEXT [--by WHO]", Does: "note what a contact said to an attempt, from step 0, which ends the search",
			Example: `manhunt answer s-1 0 "on my way"`, Run: by(answer)},
		"cancel": {Usage: "cancel SEARCH [--reason TEXT] [--by WHO]", Does: "end a search: nobody is called for it any more",
			Example: `manhunt cancel s-1 --reason "false alarm"`, Run: by(cancel)},
		"reopen": {Usage: "reopen SEARCH", Does: "begin again with a search that is over: its methods are tried from the first",
			Example: "manhunt reopen s-1", Run: by(reopen)},
		"show": {Usage: "show search|contact|contacts|searches …", Does: "print rows as JSON, a page at a time",
			Example: "manhunt show search s-1\nmanhunt show contact d-1 c-1\nmanhunt show searches c-1 --status failed --after 2019-12-31", Run: by(show)},
	},
}

// call is a command in use.
type call struct{ kit.Call }

func by(run func(context.Context, *call) error) func(context.Context, kit.Call) error {
	return func(ctx context.Context, c kit.Call) error { return run(ctx, &call{c}) }
}

// help is that of a command.
func (c *call) help(flags string) string {
	if flags != "" {
		flags = "\nFlags:\n" + flags
	}
	indent := strings.NewReplacer("\n", "\n  ").Replace
	return fmt.Sprintf(`Usage:
  %s

What it does: %s.

For example:
  %s
%s
Variables:
  SLUICE_TABLES              Manhunt's table, and after a comma Reflex's (default %s)
  SLUICE_ENDPOINT_DYNAMODB   the server of the tables (default: AWS, with the usual credentials)
`, indent(c.Usage), c.Does, indent(c.Example), flags, manhunt.DefaultTable)
}

// parse reads flags, which may stand anywhere, and checks how many arguments are left.
// false is the end: help was asked for, and given.
func (c *call) parse(fs *pflag.FlagSet, least, most int) (bool, error) {
	fs.SetOutput(io.Discard)
	err := fs.Parse(c.Args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, err := io.WriteString(c.Out, c.help(fs.FlagUsages()))
		return false, err
	case err != nil:
		return false, kit.Usage("%v: want %s", err, c.Usage)
	case fs.NArg() < least || fs.NArg() > most:
		return false, kit.Usage("%d arguments: want %s", fs.NArg(), c.Usage)
	}
	for _, arg := range fs.Args() {
		if arg == "" {
			return false, kit.Usage("an argument is empty: want %s", c.Usage)
		}
	}
	c.Args = fs.Args()
	return true, nil
}

func create(ctx context.Context, c *call) error {
	if ok, err := c.parse(pflag.NewFlagSet("create", pflag.ContinueOnError), 0, 0); !ok {
		return err
	}
	cfg, tables, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if len(tables) > 2 {
		return kit.Usage("SLUICE_TABLES names %d tables: want Manhunt's, and after it Reflex's if there is one", len(tables))
	}
	makes := []func(context.Context, aws.Config, string) error{manhunt.Create, reflex.Create}
	for i, table := range tables {
		if err := makes[i](ctx, cfg, table); err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "table %s is there\n", table)
	}
	return nil
}

func open(ctx context.Context, c *call) error {
	fs := pflag.NewFlagSet("open", pflag.ContinueOnError)
	id := fs.String("id", "", "the search's id (default: one that is drawn)")
	metadata := fs.String("metadata", "{}", "what templates may say of the search, a JSON object")
	if ok, err := c.parse(fs, 2, 2); !ok {
		return err
	}
	// Depth counts within the search.
	wrapped, err := item.FromJSON([]byte(`{"metadata":` + *metadata + `}`))
	data, _ := wrapped.Lookup("metadata")
	if err != nil || data.Kind() != item.M || wrapped.Len() != 1 {
		return kit.Usage("--metadata is no JSON object, such as {\"incident\":\"I-1\"}")
	}
	table, err := c.open(ctx)
	if err != nil {
		return err
	}
	domain, contact := c.Args[0], c.Args[1]
	if _, found, err := table.Contact(ctx, domain, contact); err != nil {
		return err
	} else if !found {
		return fmt.Errorf("domain %s has no contact %s", domain, contact)
	}
	s := manhunt.NewSearch{
		ID: cmp.Or(*id, strings.ToLower(rand.Text())), DomainID: domain, ContactID: contact,
		Started: time.Now().UTC().Format(time.RFC3339), Metadata: data.Map(),
	}
	opened, err := table.Open(ctx, s)
	switch {
	case err != nil:
		return err
	case !opened:
		return fmt.Errorf("there is a search %s, or something else with that id: want another --id", s.ID)
	}
	_, err = fmt.Fprintln(c.Out, s.ID)
	return err
}

func answer(ctx context.Context, c *call) error {
	fs := pflag.NewFlagSet("answer", pflag.ContinueOnError)
	by := fs.String("by", "", "who answers (default: the contact)")
	if ok, err := c.parse(fs, 3, 3); !ok {
		return err
	}
	step, err := strconv.ParseInt(c.Args[1], 10, 64)
	if err != nil || step < 0 {
		return kit.Usage("STEP is %q, want the number of an attempt, from 0: %s", c.Args[1], c.Usage)
	}
	table, err := c.open(ctx)
	if err != nil {
		return err
	}
	if err := over(ctx, table, c.Args[0]); err != nil {
		return err
	}
	first, err := table.Respond(ctx, c.Args[0], step, manhunt.Response{Text: c.Args[2], By: *by, At: now()})
	switch {
	case err != nil:
		return err
	case !first:
		return fmt.Errorf("search %s has no attempt %d in its round, or it was answered before", c.Args[0], step)
	}
	_, err = fmt.Fprintln(c.Out, "noted")
	return err
}

func cancel(ctx context.Context, c *call) error {
	fs := pflag.NewFlagSet("cancel", pflag.ContinueOnError)
	by := fs.String("by", "", "who cancels (default: the user who runs the command)")
	reason := fs.String("reason", "", "why")
	if ok, err := c.parse(fs, 1, 1); !ok {
		return err
	}
	table, err := c.open(ctx)
	if err != nil {
		return err
	}
	if *by == "" {
		if u, err := user.Current(); err == nil { // who it is may not be known
			*by = u.Username
		}
	}
	canceled, err := table.Cancel(ctx, c.Args[0], manhunt.Ending{By: *by, At: now(), Why: *reason})
	switch {
	case err != nil:
		return err
	case !canceled:
		return cmp.Or(over(ctx, table, c.Args[0]), fmt.Errorf("search %s has changed just now: try again", c.Args[0]))
	}
	_, err = fmt.Fprintln(c.Out, "canceled")
	return err
}

func reopen(ctx context.Context, c *call) error {
	if ok, err := c.parse(pflag.NewFlagSet("reopen", pflag.ContinueOnError), 1, 1); !ok {
		return err
	}
	table, err := c.open(ctx)
	if err != nil {
		return err
	}
	reopened, err := table.Reopen(ctx, c.Args[0])
	switch {
	case err != nil:
		return err
	case !reopened:
		return fmt.Errorf("there is no search %s that is over", c.Args[0])
	}
	_, err = fmt.Fprintln(c.Out, "reopened")
	return err
}

// over says when, by whom and why a search was ended, or that there is none; nil is an
// active one.
func over(ctx context.Context, table *manhunt.Table, id string) error {
	s, found, err := table.Search(ctx, id)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("there is no search %s", id)
	case s.Status == manhunt.Active:
		return nil
	}
	how := s.Status
	if s.Resolved != "" {
		how += " at " + s.Resolved
	}
	if s.ResolvedBy != "" {
		how += fmt.Sprintf(" by %q", s.ResolvedBy) // others wrote it
	}
	if s.Resolution != "" {
		how += fmt.Sprintf(": %q", s.Resolution)
	}
	return fmt.Errorf("search %s is over: %s", id, how)
}

// now is when a command was given: what it writes is a fact, and no handler's.
func now() time.Time { return time.Now().Truncate(time.Second) }

// open returns Manhunt's table.
func (c *call) open(ctx context.Context) (*manhunt.Table, error) {
	cfg, tables, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return manhunt.Open(cfg, tables[0])
}

func (c *call) connect(ctx context.Context) (cfg aws.Config, tables []string, err error) {
	if _, cfg, err = kit.AWS(ctx, c.Env); err != nil {
		return cfg, nil, err
	}
	for name := range strings.SplitSeq(cmp.Or(c.Env("SLUICE_TABLES"), manhunt.DefaultTable), ",") {
		tables = append(tables, strings.TrimSpace(name))
	}
	return cfg, tables, nil
}
