package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
)

// checkSample tries the conditions of each route with the records of a file that
// its patterns are for.
func (c *cli) checkSample(cfg *config.Config, app *config.App, name string) error {
	in := c.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("--sample: %w", err)
		}
		defer f.Close()
		in = f
	}
	byRoute := map[string][]*sluice.Record{}
	for rec, err := range readRecords(in) {
		if err != nil {
			return fmt.Errorf("--sample: %w", err)
		}
		if rec.Table == "" && len(app.Tables) == 1 {
			rec.Table = tableName(app.Tables[0])
		}
		verdicts, err := app.Router.Explain(rec)
		if err != nil {
			return fmt.Errorf("--sample: %w", err)
		}
		for _, v := range verdicts {
			if !v.Pattern {
				byRoute[v.Route.Name] = append(byRoute[v.Route.Name], rec)
			}
		}
	}
	var errs []error
	for _, r := range cfg.Routes {
		if err := cfg.CheckSample(r.Name, byRoute[r.Name]); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
