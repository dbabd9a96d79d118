// Package streamtest tests applications that react to DynamoDB streams.
//
// [NewService] is an in-process fake of the DynamoDB Streams API. An
// application talks to it with the SDK's client over HTTP, as it does to AWS,
// so that everything between the stream and a handler is the real thing:
//
//	s := streamtest.NewService(t)
//	orders := s.CreateTable("orders", streamtest.TableOptions{})
//	p, err := poller.New(s.Config(), router, poller.Options{Streams: …})
//	…
//	orders.Put(map[string]any{"pk": "order-1", "status": "new"})
//	orders.Split(orders.Shards()[0].ID)
//	s.Advance(16 * time.Minute) // the iterators have expired
//
// Its tables hold items of their own, and every change of one makes the record
// that DynamoDB would make of it. It splits and rolls shards, trims records
// after 24 hours, lets iterators expire after 15 minutes, throttles, and fails
// in the ways the service fails: by a script ([Service.Fail]) or drawn from a
// seed ([Service.Chaos]).
//
// It follows AWS's documentation. Where DynamoDB Local differs from that, one
// test suite that runs against both says so.
//
// Handlers need no stream: [Run] hands records, which [Insert], [Modify],
// [Remove] and [Expire] make, to those of a router and tells what became of
// each. [Sink], [Handler] and [DeadLetters] stand in for what they write to.
//
// [NewProxy] stands in front of a real server, and loses, delays, cuts and
// repeats what its clients say to it.
package streamtest
