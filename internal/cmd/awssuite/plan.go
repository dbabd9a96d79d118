package main

import (
	"fmt"
	"regexp"
	"strings"
)

// What the domain is made of, and what a run on local servers was seen to use
// (its last lines say it). TestPlan holds the plan to them.
const (
	instanceType  = "t3.small.search"
	volumeGiB     = 10
	defaultEngine = "OpenSearch_2.19"

	usualTables = 230
	usualQueues = 45
	// A test that goes wild ends here.
	maxCalls = 2_000_000
)

// prices are of us-east-1 in USD.
var prices = struct {
	asOf                           string
	instanceHour, gibMonth         float64
	millionWrites, millionRequests float64
}{"November 2026", 0.036, 0.122, 0.625, 0.40}

var validPrefix = regexp.MustCompile(`^[a-z][a-z0-9-]{1,14}[a-z0-9]$`)

func checkPrefix(prefix string) error {
	if prefix == "" {
		return fmt.Errorf("no prefix: every name begins with it; make aws PREFIX=sluice-test")
	}
	if !validPrefix.MatchString(prefix) {
		return fmt.Errorf("prefix %q: want 3 to 16 small letters, digits and hyphens, a letter first and no hyphen last", prefix)
	}
	return nil
}

func domainName(prefix string) string { return prefix + "-suite" }

// plan says what a run creates, what it costs and how long it takes.
func plan(o options, a *account) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	switch {
	case a.local:
		line("Local servers: this run proves the suite's own code. It costs nothing.")
	default:
		line("Account %s, Region %s, as %s.", a.id, a.cfg.Region, a.arn)
		line("These tests run against it, nothing else in it is read or changed:")
	}
	line("")
	line("  tables   about %d, named %s-…, on demand, of a few hundred items; %d at a time", usualTables, o.prefix, parallel(a))
	line("  queues   about %d, named %s-…", usualQueues, o.prefix)
	domain := o.opensearch == "" && !a.local
	switch {
	case domain:
		line("  domain   %s: one %s with %d GiB, %s; only you may use it, by signed requests", domainName(o.prefix), instanceType, volumeGiB, o.engine)
	default:
		line("  domain   none: the indices are made in %s", o.opensearch)
	}
	line("")
	if !a.local {
		hours := prices.instanceHour + prices.gibMonth*volumeGiB/730
		line("Cost, prices of us-east-1 as of %s; other Regions differ by up to a half:", prices.asOf)
		if domain {
			line("  domain   %.2f USD for each hour begun (%.3f the instance, %.3f USD the GiB-month)", hours, prices.instanceHour, prices.gibMonth)
			line("           https://aws.amazon.com/opensearch-service/pricing/")
		}
		line("  tables   %.3f USD for a million writes; a run makes about 0.1 million", prices.millionWrites)
		line("           https://aws.amazon.com/dynamodb/pricing/on-demand/")
		line("  queues   %.2f USD for a million requests; a run makes about 5,000", prices.millionRequests)
		line("           https://aws.amazon.com/sqs/pricing/")
		line("  in all   well below 1 USD. The suite ends after %v, and its tests get %d requests at most.", o.timeout, maxCalls)
		line("")
		if domain {
			line("Time: about an hour, half of it until the domain is there.")
		} else {
			line("Time: about half an hour.")
		}
		line("Rights: those of internal/cmd/awssuite/policy.json are enough.")
	}
	line("What it made it removes by name at its end, also after Ctrl-C. It removes what has its tag")
	line("%s only. Should it be killed: make aws CLEANUP=1 PREFIX=%s", tagKey, o.prefix)
	return b.String()
}

func parallel(a *account) int {
	if a.local {
		return 3
	}
	return 8
}
