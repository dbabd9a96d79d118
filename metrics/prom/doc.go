// Package prom turns the hooks of Sluice's packages into Prometheus series.
//
//	registry := prometheus.NewRegistry()
//	m := prom.New(registry)
//	o := flow.Options{Hooks: m.Flow(router)}
//
// Sluice's core does not import this package. For another metric system, use the
// same hooks.
//
// Labels are names of routes and tables, which a program has few of. Shards and
// keys are not labels.
package prom
