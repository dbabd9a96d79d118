package main

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
)

// backfill is the file with the route alone, for a backfill of one table, and
// the name that tells this backfill from others of the table. It sets o as the
// file and the environment say.
func (r *routeFlag) backfill(cmd *cobra.Command, o *daemon.Options, types []string) (*config.Config, string, error) {
	p, err := r.load(cmd.Context())
	if err != nil {
		return nil, "", err
	}
	flagged := o.Tables
	fromFile(cmd.Flags().Changed, o, p.cfg)
	o.Tables = flagged // one of the file's, below
	if err := o.FromEnv(cmd.Flags(), r.cli.env); err != nil {
		return nil, "", err
	}
	if len(o.Tables) > 1 {
		return nil, "", usage("--table: %q are named: one backfill reads one table", o.Tables)
	}
	table, err := oneTable(p.cfg, strings.Join(o.Tables, ""))
	if err != nil {
		return nil, "", err
	}
	o.Tables = []string{table}
	cfg, err := p.backfill(table, types)
	if err != nil {
		return nil, "", err
	}
	return cfg, p.backfillName(cfg), nil
}

// backfillName depends on the place of the documents and the selection of items,
// not on the content of documents: --again writes new content.
func (p *projected) backfillName(only *config.Config) string {
	r := only.Routes[0]
	types, _ := json.Marshal(only.EntityType) // texts never fail
	t := target{projectionFlags: projectionFlags{
		urls: clusterURLs(p.cfg, r.Project.To), index: r.Project.Index, id: r.Project.ID, types: r.On,
		typeAttribute: string(types), versionAttribute: r.Project.Version,
	}}
	return t.name()
}
