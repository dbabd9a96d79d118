// Package prom turns the hooks of Sluice's packages into Prometheus series.
//
//	m := prom.New(registry)
//	o := flow.Options{Hooks: m.Flow(router)}
//
// Nothing of Sluice's core imports this package: who wants other metrics hangs
// them on the same hooks.
//
// Labels are names of routes and tables, which a program has few of; neither
// shards nor keys are labels.
package prom
