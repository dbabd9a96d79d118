// Package run makes a program of an application's routes: a Lambda function
// when it is started by Lambda, and a daemon that reads the tables' streams and
// consumes queues everywhere else.
//
// # The daemon
//
// --help lists its flags, and the environment variable for each. It keeps positions and dead letters in a state file,
// answers /metrics, /livez, /startedz and /readyz on a loopback address, shows its state at
// / and the items that wait at /lanes, and logs to standard error. A gap, records
// that were trimmed before they were read, keeps it from being ready until
// somebody on its machine has seen it: POST /gaps/acknowledge. SIGTERM and SIGINT
// let it drain: it stops reading, handles what it has taken, stores the positions
// and exits with 0 within the grace period; what is not settled by then comes
// again at the next start. A second signal ends it at once. It exits with 1 when
// it cannot start, and with 2 when a flag is wrong.
//
// In a container with a memory limit it sets GOMEMLIMIT to 90 % of that, unless
// the environment sets it.
//
// # The function
//
// A Lambda function takes the same application and no flags, and the events of
// both streams and queues. Its metrics are lines for CloudWatch on standard
// output, as package emf has them; SLUICE_EMF=off writes none. What fails for good
// goes to the queue of SLUICE_DEAD_LETTER_QUEUE or [App].DeadLetter; without one it
// stops its batch. A function that
// has to start fast is better built on lambda.Start, which links neither the
// poller nor the state file nor Prometheus.
package run
