package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// routeFlag takes a projection from the configuration, in place of the flags
// that describe one.
type routeFlag struct {
	cli     *cli
	name    string
	instead []string // flags that say the same, and cannot stand beside it
}

const routeHelp = `The projection, its table and its cluster come from --route, or from the only route
that projects. Or describe them by flags.`

func (r *routeFlag) add(cmd *cobra.Command, f *pflag.FlagSet) {
	f.StringVar(&r.name, "route", "", "`name` of the route (default: the only one of its kind)")
	completeBy(cmd, "route", r.cli.routeNames("project"))
}

// byFlags reports whether flags describe the projection, and not the file. A
// mixture with --route is an error.
func (r *routeFlag) byFlags(f *pflag.FlagSet) (bool, error) {
	var given []string
	for _, name := range r.instead {
		if f.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if r.name != "" && len(given) > 0 {
		return false, usage("--route: the file says what %s would: want one of both", strings.Join(given, ", "))
	}
	if len(given) > 0 {
		return true, nil
	}
	path, named := r.cli.path()
	if r.name != "" || named {
		return false, nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if f.Changed("table") { // a table of no file
			return true, nil
		}
		return false, usage("%w; or describe the projection by flags, as --help shows", &noFileError{path: path})
	}
	return false, nil
}

// projected is a route of the file that projects.
type projected struct {
	cfg   *config.Config
	built config.BuiltRoute
	index string // its template
}

func isProjection(r config.BuiltRoute) bool { return r.Projection != nil }

// find finds the route of the file; nil: flags describe the projection.
func (r *routeFlag) find(cmd *cobra.Command) (*projected, error) {
	if byFlags, err := r.byFlags(cmd.Flags()); byFlags || err != nil {
		return nil, err
	}
	cfg, app, err := r.cli.loadApp(cmd.Context(), config.Setup{})
	if err != nil {
		return nil, err
	}
	built, err := route(app, r.name, "project", isProjection)
	if err != nil {
		return nil, err
	}
	return &projected{cfg: cfg, built: built, index: built.Projection.Options.Index}, nil
}

// oneTable is the table of that name, or the only one of the file.
func oneTable(cfg *config.Config, name string) (string, error) {
	names := tablesOf(cfg)
	switch {
	case name != "" && slices.Contains(names, name):
		return name, nil
	case name != "":
		return "", usage("--table: the file does not read %q%s", name, didYouMean(name, names))
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", errors.New("the file reads no table: name one in source.tables")
	}
	return "", usage("the file reads several tables: say which by --table: %s", strings.Join(names, ", "))
}

func tablesOf(cfg *config.Config) []string {
	var names []string
	for _, t := range cfg.Source.Tables {
		if name := tableName(t); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// alone is the file with the one route alone, on one table: for SNAPSHOT
// records of the given types, or of those of its patterns.
func (p *projected) alone(table string, types []string) (*config.Config, error) {
	all := p.built.Written.Types()
	for _, t := range types {
		if !slices.Contains(all, t) && !slices.Contains(all, "*") {
			return nil, usage("--type: route %s does not project %q%s", p.built.Name, t, didYouMean(t, all))
		}
	}
	if len(types) == 0 {
		types = all
	}
	cfg := *p.cfg
	cfg.Routes = []config.Route{snapshots(p.built.Written, types)}
	cfg.Source.Tables, cfg.Source.Queues = []string{table}, nil
	return &cfg, nil
}

// snapshots is a route for SNAPSHOT records of the types.
func snapshots(r config.Route, types []string) config.Route {
	r.On = mapped(types, func(t string) string { return t + "#SNAPSHOT" })
	return r
}

// source is what becomes of the tables' items in the route's index, by all
// routes of the file that project into it, by whichever template: what another
// one has written is no ghost. unfenced takes projections without versions.
func (p *projected) source(ctx context.Context, c *cli, unfenced bool) (*source, error) {
	of := p.built.Written.Project
	if of.Version == "none" && !unfenced {
		return nil, fmt.Errorf("route %s: its version is none, so that nothing would keep an older state from standing: want sequence, or attribute:<path>", p.built.Name)
	}
	cfg := *p.cfg
	cfg.Routes = nil
	tombstones := false
	reach := &reach{behind: behind(p.built.Projection.Client), known: map[string][]string{}}
	var owners []owner
	for _, r := range p.cfg.Routes {
		if r.Project == nil || !sameCluster(p.cfg, r.Project.To, of.To) {
			continue
		}
		if meet, err := reach.meet(ctx, r.Project.Index, of.Index); !meet || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		project := *r.Project
		project.UnfencedBackfill = project.UnfencedBackfill || unfenced
		r.Project = &project
		tombstones = tombstones || len(project.Tombstone) > 0
		owners = append(owners, ownerOf(r, typeAttribute(p.cfg)))
		cfg.Routes = append(cfg.Routes, snapshots(r, r.Types()))
	}
	app, err := c.build(ctx, &cfg, config.Setup{})
	if err != nil {
		return nil, err
	}
	return &source{
		cfg: app.AWS("dynamodb"), tables: tablesOf(&cfg), markField: markField(of), forgetDeleted: of.ForgetDeleted, store: p.built.Projection.Store,
		index: p.index, write: p.built.Projection.Write, tombstones: tombstones,
		foreign: foreign(owners),
		project: func(rec *sluice.Record) (ops []document.Op, err error) {
			routes, err := app.Router.Match(nil, rec)
			for _, r := range routes {
				more, oneErr := app.Route(r.Name).Projection.Project(rec)
				err = errors.Join(err, oneErr)
				for _, op := range more {
					meet, oneErr := reach.meet(ctx, op.Index, of.Index)
					if err = errors.Join(err, oneErr); meet {
						ops = append(ops, op)
					}
				}
			}
			return ops, err
		},
	}, nil
}

// markField is the field of a projection's marks; empty without versions by
// sequence.
func markField(p *config.Project) string {
	if p.Version != "sequence" {
		return ""
	}
	return cmp.Or(p.Mark, projection.DefaultMark)
}

// marks are those of an index' file; none where documents have none.
func marks(index, field string, forgetDeleted bool) map[string]*opensearch.Marks {
	if field == "" {
		return nil
	}
	return map[string]*opensearch.Marks{index: new(opensearch.Indices).Marks(field, forgetDeleted)}
}

// body is what a new index behind the alias is made of.
func (p *projected) body() ([]byte, error) {
	body, err := p.built.Projection.IndexBody()
	if body == nil && err == nil {
		return nil, usage("--indices is missing: the configuration's sink has no file for %s in indices", p.index)
	}
	return body, err
}
