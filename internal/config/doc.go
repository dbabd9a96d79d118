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
// [Load] reads and checks a file without a call to anybody; [Config.Build]
// makes sinks and routes of it. A program of its own can do both and add routes
// in Go; cmd/sluice does with a daemon, cmd/sluice-lambda with a function. This
// package links neither the poller nor the state file nor Prometheus, so that a
// function built on it starts fast.
//
// A new kind of handler is a file with its struct, check and build, such as send.go, a
// field of [Route], and a line in allHandlers. Then run go generate.
package config
