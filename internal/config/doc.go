// Package config makes an application of a YAML file: where records come from,
// which of them take which ready-made handler, and where effects go.
//
//	name: searches
//	source:
//	  tables: [manhunt]
//	sinks:
//	  calls: {sqs: {queue: calls}}
//	routes:
//	  - name: new search
//	    on: search#INSERT
//	    when: new.status == "active"
//	    send: {to: calls}
//
// [Load] reads and checks a file, and calls no service. [Config.Build] makes its sinks
// and routes. cmd/sluice runs them as a daemon, cmd/sluice-lambda as a function. Your
// own program can do both calls, and add routes in Go. This package does not link the
// poller, the state file or Prometheus: a function built on it starts fast.
//
// A new kind of handler is a file with its struct, check and build, such as send.go, a
// field of [Route], and a line in allHandlers. Then run go generate.
package config
