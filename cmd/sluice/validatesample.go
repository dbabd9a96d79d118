package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
)

// readSample reads the records of --sample; none without the flag.
func (c *cli) readSample(name string) ([]*sluice.Record, error) {
	if name == "" {
		return nil, nil
	}
	in := c.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--sample: %w", err)
		}
		defer f.Close()
		in = f
	}
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
		if rec.Table == "" && len(app.Tables) == 1 {
			rec.Table = tableName(app.Tables[0])
		}
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
