package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/letters"
)

func dlqShowCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c}
	var asJSON, payload bool
	cmd := &cobra.Command{
		Use:               "show ID",
		Short:             "Show one dead letter",
		Long:              "Show one dead letter: its place in the stream, every error, and what to do.",
		Example:           `  sluice dlq show ID --payload --json | jq .record.dynamodb.NewImage`,
		Args:              exactlyOne("one id, as sluice dlq list prints it"),
		ValidArgsFunction: place.complete(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return place.with(cmd.Context(), false, func(l *lettersOpen) error {
				o, err := l.api.show(cmd.Context(), args[0], payload)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.stdout, o)
				}
				if err := c.printLetter(o, payload); err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.stdout, "\nWhat to do:\n%s\n", adviceFor(o).text(o, place.given()))
				return err
			})
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&payload, "payload", false, "also print the record")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	place.addFlags(fs)
	return cmd
}

func (c *cli) printLetter(o letters.Outline, payload bool) error {
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, plain(value))
		}
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	fault := func(name string, f letters.Fault) {
		line(name, strings.TrimSpace(at(f.At)+"  "+cutText(f.Error, 4096)))
		for _, d := range f.Details {
			for _, k := range slices.Sorted(maps.Keys(d)) {
				line("", k+": "+cutText(d[k], 4096))
			}
		}
	}
	line("id", o.ID)
	line("kind", o.Kind)
	line("gap", o.Gap)
	line("table", o.Table)
	line("route", routeName(o.Route, o.Kind))
	line("event", o.EventName)
	line("event id", o.EventID)
	line("key", string(o.Keys))
	line("stream", o.StreamARN)
	line("shard", o.ShardID)
	line("sequence", o.Sequence)
	line("origin", o.Origin)
	line("changed", at(o.Created))
	line("parked", at(o.ParkedAt))
	line("unsigned", o.Unverified)
	if o.Kind != "gap" {
		line("calls", fmt.Sprintf("%d, %d of them redrives", o.Attempts, o.Redrives))
		line("bytes", fmt.Sprint(o.Bytes))
	}
	fault("first error", o.First)
	fault("last error", o.Last)
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case o.Kind == "reference":
		fmt.Fprintln(c.stdout, "The record was too large to be kept. A redrive reads it again from the stream, which holds it\nfor a day; later the item as it is now takes its place, for routes that name SNAPSHOT.")
	case !payload || o.Kind == "gap":
	case o.Base64 != nil:
		fmt.Fprintf(c.stdout, "record, which is no JSON:\n%q\n", o.Base64)
	default:
		text, err := json.MarshalIndent(o.Record, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(c.stdout, "record:\n%s\n", text)
	}
	return nil
}
