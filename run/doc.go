// Package run makes a program from an application's routes. Started by Lambda, it
// is a Lambda function. Anywhere else it is a daemon that reads the streams of
// tables and consumes queues.
//
// # The daemon
//
// --help lists its flags, and the environment variable of each. It keeps positions
// and dead letters in a state file and logs to standard error. On a loopback
// address it serves /metrics, /livez, /startedz and /readyz, its state at /, and
// the waiting items at /lanes. A gap (records trimmed before they were read) makes
// it unready until somebody on its machine acknowledges it by POST
// /gaps/acknowledge. SIGTERM and SIGINT drain it: it stops reading, handles the
// records it took, stores the positions and exits with 0 within the grace period.
// Unsettled records come again at the next start. A second signal ends it at once.
// It exits with 1 if it cannot start, and with 2 if a flag is wrong.
//
// In a container with a memory limit it sets GOMEMLIMIT to 90 % of the limit,
// unless the environment sets it.
//
// # The function
//
// A Lambda function uses the same application without flags. It takes events of
// both streams and queues. It writes metrics for CloudWatch to standard output, by
// package emf; SLUICE_EMF=off turns them off. A permanent failure goes to the
// queue of SLUICE_DEAD_LETTER_QUEUE or [App].DeadLetter; without a queue it stops
// its batch. For a fast cold start, use lambda.Start instead: it links neither the
// poller, the state file, nor Prometheus.
package run
