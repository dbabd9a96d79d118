// Package daemon is the program that package run makes of an application, and what
// the command sluice takes of it: the daemon with its pages, a backfill beside no
// daemon, and the Lambda function.
package daemon
