// Package emf writes the metrics of a Lambda function in CloudWatch's embedded
// metric format: lines of JSON on standard output, of which CloudWatch makes
// metrics. No call is made, and no agent is needed.
//
//	m := emf.New(os.Stdout, emf.Options{})
//	router.Count(m)
//	lambda.Start(router, lambda.Options{Invoked: m.Invoked, FlowHooks: m.Flow(router)})
//
// At the end of each invocation one line tells of it, and one more of each route
// and of each sink that had something to do. With the dimensions of
// [Options.Dimensions]:
//
//	Invocations, InvocationErrors    all of the batch comes again
//	PartialFailures                  the rest of the batch comes again
//	ColdStarts                       first invocations of a process
//	Records, Settled, Failed, Parked records, as lambda.Invocation has them
//	Unrouted                         records that no route takes
//	InvocationDuration               milliseconds
//
// With the dimension Route besides:
//
//	Done, Skipped, Parked, Failed    records by outcome; Failed ones come again
//	ParkFailures                     refusals of the dead letters
//	StuckHandlers                    calls that have been running for too long
//	HandlerDuration                  milliseconds of each call, waiting in sinks included
//
//	Filtered                         records that the route's conditions passed over
//
// And what packages of the program declare with a name in CloudWatch, by
// metrics.New, when it is not 0. With the dimension Sink besides:
//
//	CommitItems                      items of each group commit
//	CommitFailures                   items that were answered with an error
//	CommitDuration                   milliseconds of each group commit
//
// With the dimension Escalation, the kind, or none:
//
//	ProjectionLost                   changes that a document does not show
//	EscalationAlarms                 of the watchdog
//	EscalationProblems               bad steps and attributes that were passed over
//
// A metric of the format has 100 values a line at most: of more calls than that
// in one invocation, the slowest and 99 at random stand for all. How many there
// were, the counts say.
//
// CloudWatch takes money for each metric, which is a name with values of its
// dimensions: nine or ten for a function, seven for each route at most, three
// for each sink. Neither keys nor ids are dimensions; the request's id is a
// field of the line, for searches in the log.
package emf
