// Package daemon is the program behind package run and the command sluice: the
// daemon with its pages, a backfill without a daemon, and the Lambda function.
package daemon
