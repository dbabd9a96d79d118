package main

import "github.com/sluicehq/sluice/internal/config"

// repairs returns the commands that rewrite the results of lost records. They do
// not include messages that were never sent.
func (c *cli) repairs(cfg *config.Config) []string {
	file := ""
	if path, named := c.path(); named {
		file = " --config " + shellQuoted(path)
	}
	var all []string
	for _, r := range cfg.Routes {
		switch {
		case r.Project != nil:
			all = append(all, "sluice audit"+file+" --route "+shellQuoted(r.Name)+" --repair")
		case r.Count != nil:
			all = append(all, "sluice recount"+file+" --route "+shellQuoted(r.Name)+" --repair")
		case r.Cascade != nil:
			all = append(all, "sluice cascade"+file+" --route "+shellQuoted(r.Name)+" --key KEY   # of each parent that is gone")
		}
	}
	return all
}
