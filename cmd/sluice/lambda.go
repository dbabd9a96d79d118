package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/views"
	"github.com/sluicehq/sluice/item"
)

func lambdaCommand(c *cli) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "lambda",
		Short: "Try the configuration's Lambda function, and print its filters",
		Long:  "Run the configuration's Lambda function on this machine, or print its filters.",
		Example: `  sluice lambda invoke event.json
  sluice lambda filters --table orders`,
	}, lambdaInvokeCommand(c), lambdaFiltersCommand(c), lambdaFunctionCommand(c))
}

var filterFormats = []string{"json", "sam", "terraform"}

func lambdaFiltersCommand(c *cli) *cobra.Command {
	var table, format, viewName string
	cmd := &cobra.Command{
		Use:   "filters",
		Short: "Print the filters of the function's event source mapping",
		Long: `Print the FilterCriteria for the event source mapping of a table's stream: then Lambda
does not call the function for records that no route takes.

A filter never drops a record that a route takes, unless its type attribute is not a
string. It ignores when and changed. With --view the filters are narrower, and wrong for
another view.`,
		Example: `  sluice lambda filters --view NEW_AND_OLD_IMAGES
  aws lambda update-event-source-mapping --uuid ID --filter-criteria "$(sluice lambda filters --table orders)"`,
		RunE: func(*cobra.Command, []string) error {
			if !slices.Contains(filterFormats, format) {
				return usage("--format: %q is not one of %s", format, strings.Join(filterFormats, ", "))
			}
			view, err := item.BothImages, error(nil)
			if viewName != "" {
				if view, err = views.Parse(viewName); err != nil {
					return usage("--view: %w", err)
				}
			}
			cfg, err := c.load()
			if err != nil {
				return err
			}
			if table != "" && len(cfg.Source.Tables) > 0 {
				if table, err = oneTable(cfg, table); err != nil {
					return err
				}
			}
			all, err := tableFilters(cfg, table, view, viewName != "")
			if err != nil {
				return err
			}
			for _, f := range all {
				if len(f.patterns) == 0 {
					fmt.Fprintf(c.stderr, "table %s: every record of the stream may be one that a route takes: there is no filter\n", f.table)
				}
			}
			return printFilters(c.stdout, format, all)
		},
	}
	f := cmd.Flags()
	f.StringVar(&table, "table", "", "`name` of the table (default: those of the file)")
	f.StringVar(&viewName, "view", "", "`view` of the stream, such as NEW_AND_OLD_IMAGES (default: any)")
	f.StringVar(&format, "format", "json", "json, sam or terraform")
	return cmd
}

// tableFilter are the filters of one table's mapping.
type tableFilter struct {
	table    string
	patterns []string
}

// tableFilters are those of the one table, or of all of the file.
func tableFilters(cfg *config.Config, only string, view item.View, viewKnown bool) ([]tableFilter, error) {
	tables := []string{only}
	if only == "" {
		if tables = cfg.Source.Tables; len(tables) == 0 {
			return nil, errors.New("the file names no table: say which by --table")
		}
	}
	var all []tableFilter
	for _, name := range tables {
		table := tableName(name)
		patterns, err := lambdaFilters(cfg, table, view, viewKnown)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", table, err)
		}
		all = append(all, tableFilter{table, patterns})
	}
	return all, nil
}

func printFilters(w io.Writer, format string, all []tableFilter) error {
	if format == "json" {
		type filter struct{ Pattern string }
		byTable := map[string]any{}
		for _, f := range all {
			filters := mapped(f.patterns, func(p string) filter { return filter{p} }) // an empty list takes filters away
			byTable[f.table] = map[string]any{"Filters": filters}
		}
		if len(all) == 1 {
			return printJSON(w, byTable[all[0].table])
		}
		return printJSON(w, byTable)
	}
	var b strings.Builder
	for i, f := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# Table %s\n", f.table)
		switch {
		case len(f.patterns) == 0:
			b.WriteString("# Every record of the stream may be one that a route takes: no filter.\n")
		case format == "sam":
			b.WriteString("FilterCriteria:\n  Filters:\n")
			for _, p := range f.patterns {
				fmt.Fprintf(&b, "    - Pattern: '%s'\n", strings.ReplaceAll(p, "'", "''"))
			}
		default:
			b.WriteString("filter_criteria {\n")
			for _, p := range f.patterns {
				fmt.Fprintf(&b, "  filter {\n    pattern = %s\n  }\n", hclString(p))
			}
			b.WriteString("}\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// hclString quotes text for HCL, in which ${ and %{ begin a template.
func hclString(text string) string {
	quoted, _ := json.Marshal(text) // a string never fails
	return strings.NewReplacer("${", "$${", "%{", "%%{", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(quoted))
}
