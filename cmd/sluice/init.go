package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
)

func initCommand(c *cli) *cobra.Command {
	var o config.InitOptions
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first configuration, with comments",
		Long: `Write a first configuration, with comments, that is valid as it stands: of flags,
or, when there are none and this is a terminal, of the answers to a few questions.
The file is --config, or $SLUICE_CONFIG, or sluice.yaml; "-" is standard output. A
file that is there is overwritten with --force only.

It exits with 0 when the file is written, with 1 when it cannot be, and with 2 for
wrong usage.`,
		Example: `  sluice init
  sluice init --table orders --type order --handler send --queue jobs
  sluice init --config - --handler project --cluster https://search.example.com:9200`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := 0
			for _, name := range []string{"name", "table", "start", "entity-type", "type", "key", "handler", "queue", "cluster", "schema"} {
				if cmd.Flags().Changed(name) {
					given++
				}
			}
			path, _ := c.path()
			if err := absent(path, force); err != nil {
				return err
			}
			if given == 0 && isTerminal(c.stdin) && isTerminal(c.stderr) {
				if err := ask(c.stdin, c.stderr, &o); err != nil {
					return err
				}
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
	f.StringSliceVar(&o.Tables, "table", nil, "`table` whose stream is read, or the ARN of its stream; repeat it, or separate with commas (default orders)")
	f.StringSliceVar(&o.Handlers, "handler", nil, "what its changes are for: send, project, cascade, count or log; a route for each (default log)")
	f.StringSliceVar(&o.Types, "type", nil, "entity `type` that the routes are for (default order)")
	f.StringVar(&o.EntityType, "entity-type", "", "`attribute` that tells the entity type (default entityType)")
	f.StringSliceVar(&o.Key, "key", nil, "key `attributes` of the tables (default PK,SK)")
	f.StringVar(&o.Queue, "queue", "", "`queue` of send and cascade, by name or URL (default jobs)")
	f.StringVar(&o.Cluster, "cluster", "", "`URL` of project's OpenSearch (default http://127.0.0.1:9200)")
	f.StringVar(&o.Start, "start", "", "where a stream begins that was never read: TRIM_HORIZON or LATEST (default LATEST)")
	f.StringVar(&o.Name, "name", "", "`name` of the application (default sluice)")
	f.StringVar(&o.Schema, "schema", "", "path or `URL` of the schema, for editors (default where it is published)")
	f.BoolVar(&force, "force", false, "overwrite a file that is there")
	complete(cmd, "handler", config.InitHandlers...)
	complete(cmd, "start", "TRIM_HORIZON", "LATEST")
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

// write makes the file; without force it never takes the place of one that came
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

// ask asks for the options that differ from one application to the next. An
// empty answer is the default.
func ask(in io.Reader, out io.Writer, o *config.InitOptions) error {
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
	list := func(text, def string, to *[]string) error {
		answer, err := question(text, def)
		for part := range strings.FieldsFuncSeq(answer, func(r rune) bool { return r == ',' || r == ' ' }) {
			*to = append(*to, part)
		}
		return err
	}
	var err error
	if err = list("Tables whose streams are read", "orders", &o.Tables); err != nil {
		return err
	}
	if err = list("Their key attributes", "PK, SK", &o.Key); err != nil {
		return err
	}
	if o.EntityType, err = question("The attribute that tells the entity type", "entityType"); err != nil {
		return err
	}
	if err = list("Entity types that the routes are for", "order", &o.Types); err != nil {
		return err
	}
	if err = list("What is to be done: "+strings.Join(config.InitHandlers, ", "), "log", &o.Handlers); err != nil {
		return err
	}
	for _, h := range o.Handlers {
		switch {
		case (h == "send" || h == "cascade") && o.Queue == "":
			o.Queue, err = question("The queue, by name or URL", "jobs")
		case h == "project":
			o.Cluster, err = question("The URL of OpenSearch", "http://127.0.0.1:9200")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
