package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
)

func initCommand(c *cli) *cobra.Command {
	var o config.InitOptions
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first configuration, with comments",
		Long: `Write a first configuration, with comments. In a terminal, without flags, the command
asks. --config - writes to standard output.`,
		Example: `  sluice init --table orders --queue jobs
  sluice init --table orders --type order,invoice --handler send,log`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := 0
			for _, name := range []string{"name", "table", "start", "entity-type", "type", "key", "handler", "queue", "cluster", "schema"} {
				flag := cmd.Flags().Lookup(name)
				if !flag.Changed {
					continue
				}
				given++
				if value := flag.Value.String(); value == "" || value == "[]" { // of a variable that is not set, mostly
					return usage("--%s is empty: say which, or leave it out for the default", name)
				}
			}
			path, _ := c.path()
			if err := absent(path, force); err != nil {
				return err
			}
			if given == 0 && isTerminal(c.stdin) && isTerminal(c.stderr) {
				if err := ask(c.stdin, c.stderr, c.cluster(), &o); err != nil {
					return err
				}
			}
			if o.Cluster == "" && slices.Contains(o.Handlers, "project") {
				o.Cluster = c.cluster()
			}
			text, err := config.Init(o)
			if err != nil {
				return usage("%w", err)
			}
			if path == "-" {
				_, err := c.stdout.Write(text)
				return err
			}
			if err := write(path, text, force); err != nil {
				return err
			}
			c.next(path)
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&o.Tables, "table", nil, "`table` to read, or the ARN of its stream; repeatable (default orders)")
	f.StringSliceVar(&o.Handlers, "handler", nil, "send, project, cascade, count or log: a route for each (default: by --queue, --cluster)")
	f.StringSliceVar(&o.Types, "type", nil, "entity `type` of the routes (default order)")
	f.StringVar(&o.EntityType, "entity-type", "", "`attribute` of the entity type (default entityType)")
	f.StringSliceVar(&o.Key, "key", nil, "key `attributes` of the tables (default pk)")
	f.StringVar(&o.Queue, "queue", "", "`queue` of send, else of cascade (default jobs)")
	f.StringVar(&o.Cluster, "cluster", "", "`URL` of OpenSearch for project, may hold '${NAME}' ($SLUICE_OPENSEARCH; default http://127.0.0.1:9200)")
	f.StringVar(&o.Start, "start", "", "begin a stream that was never read at TRIM_HORIZON or LATEST (default LATEST)")
	f.StringVar(&o.Name, "name", "", "`name` of the application (default sluice)")
	f.StringVar(&o.Schema, "schema", "", "`URL` of the schema for editors (default: the published one)")
	f.BoolVar(&force, "force", false, "overwrite an existing file")
	_ = cmd.MarkFlagFilename("schema", "json")
	return cmd
}

// absent refuses a file that is there, before anything is asked.
func absent(path string, force bool) error {
	if path == "-" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder: name the file in it by --config", path)
	case err == nil && !force:
		return fmt.Errorf("%s is there already: overwrite it by --force, or name another by --config", path)
	}
	return nil // what else is wrong the write tells
}

// write creates the file. Without force it never replaces a file that appeared
// meanwhile.
func write(path string, text []byte, force bool) error {
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, mode, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return absent(path, false)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// next says what to do with the file.
func (c *cli) next(path string) {
	flag := ""
	if path != defaultConfig {
		flag = " --config " + path
	}
	fmt.Fprintf(c.stderr, `%s is written. Next:

  sluice validate%[2]s             what is wrong with it; with --connect, what is not there
  sluice tail%[2]s                 the changes of the table, and the routes that they take
  sluice run%[2]s                  read the streams, and handle what comes
`, path, flag)
}

// cluster is the first of the clusters that the environment names.
func (c *cli) cluster() string {
	url, _, _ := strings.Cut(c.env(opensearchEnv), ",")
	return url
}

// ask asks for the options that differ between applications. An empty answer is
// the default. It repeats the question after an invalid answer.
func ask(in io.Reader, out io.Writer, cluster string, o *config.InitOptions) error {
	lines := bufio.NewScanner(in)
	question := func(text, def string) (string, error) {
		fmt.Fprintf(out, "%s [%s]: ", text, def)
		if !lines.Scan() {
			fmt.Fprintln(out)
			return "", errors.Join(errors.New("the answers ended: nothing was written"), lines.Err())
		}
		if answer := strings.TrimSpace(lines.Text()); answer != "" {
			return answer, nil
		}
		return def, nil
	}
	asked := func(handlers ...string) bool {
		return slices.ContainsFunc(handlers, func(h string) bool { return slices.Contains(o.Handlers, h) })
	}
	always := func() bool { return true }
	for _, q := range []struct {
		text, def string
		one       *string
		list      *[]string
		when      func() bool
	}{
		{"Tables whose streams are read", "orders", nil, &o.Tables, always},
		{"The attribute that tells the entity type", "entityType", &o.EntityType, nil, always},
		{"Entity types that the routes are for", "order", nil, &o.Types, always},
		{"What is to be done: " + strings.Join(config.InitHandlers, ", "), "log", nil, &o.Handlers, always},
		{"The tables' key attributes", "pk", nil, &o.Key, func() bool { return asked("project", "cascade") }},
		{"The queue, by name or URL", "jobs", &o.Queue, nil, func() bool { return asked("send", "cascade") }},
		{"The URL of OpenSearch", cmp.Or(cluster, "http://127.0.0.1:9200"), &o.Cluster, nil, func() bool { return asked("project") }},
	} {
		for again := q.when(); again; { // until a file can be made with the answer
			answer, err := question(q.text, q.def)
			if err != nil {
				return err
			}
			if q.list != nil {
				*q.list = strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' })
			} else {
				*q.one = answer
			}
			_, err = config.Init(*o)
			if again = err != nil; again {
				var places config.Errors // of a file that nobody has seen
				if errors.As(err, &places) && len(places) > 0 {
					err = errors.New(places[0].Problem)
				}
				fmt.Fprintf(out, "  %v\n", err)
			}
		}
	}
	return nil
}
