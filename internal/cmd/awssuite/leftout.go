package main

// leftOut are packages, and tests of others, that do not run against AWS, and
// why.
var leftOut = map[string]string{
	"deploy/checks":          "checks files with tools, on no server",
	"internal/sim":           "uses no server",
	"internal/cmd/withstack": "is about the local servers",
	"internal/localtest":     "is about the local servers",
	"internal/demo":          "names its tables itself; the examples that it runs have tests of their own",
	"internal/losstest":      "kills its own OpenSearch",
	"internal/fleettest":     "cuts its daemons off from its own DynamoDB",

	"internal/daemon.TestPageInABrowser":          "uses no server of AWS",
	"sources/poller.TestLocalBeginningOfAShard":   "needs a stream of one shard, of a table on demand",
	directPkg + ".TestGatewayOnServers":           "is about the local servers",
	"sinks/opensearch.TestLocalExactOverRestarts": "kills its own OpenSearch",
}
