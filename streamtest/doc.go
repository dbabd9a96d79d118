// Package streamtest tests applications that react to DynamoDB streams.
//
// [NewService] is an in-process fake of the DynamoDB Streams API. An application
// uses it through the SDK's client over HTTP, like AWS. So everything between the
// stream and a handler is real:
//
//	s := streamtest.NewService(t)
//	orders := s.CreateTable("orders", streamtest.TableOptions{})
//	p, err := poller.New(s.Config(), router, poller.Options{Streams: …})
//	…
//	orders.Put(map[string]any{"pk": "order-1", "status": "new"})
//	orders.Split(orders.Shards()[0].ID)
//	s.Advance(16 * time.Minute) // the iterators have expired
//
// Its tables hold items, and every change of an item makes DynamoDB's record of
// it. It splits and rolls shards, trims records after 24 hours, lets iterators
// expire after 15 minutes, throttles, and fails like the service: by a script
// ([Service.Fail]) or from a seed ([Service.Chaos]).
//
// It follows AWS's documentation. A test suite that runs against both lists its
// differences from DynamoDB Local.
//
// Handlers need no stream: [Run] passes records to the handlers of a router and
// returns the outcome of each. [Insert], [Modify], [Remove] and [Expire] make
// records. [Sink], [Handler] and [DeadLetters] replace the targets of handlers.
//
// [NewProxy] is a proxy in front of a real server. It loses, delays, cuts and
// repeats requests and responses.
package streamtest
