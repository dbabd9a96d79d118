package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/sluicehq/sluice/internal/localtest"
)

// What the domain is made of, and what a run on local servers was seen to use:
// its last line says it.
const (
	instanceType  = "t3.small.search"
	volumeGiB     = 10
	defaultEngine = "OpenSearch_2.19"

	usualTables = 280
	usualQueues = 55
	oneShard    = 45 // tables with a capacity, for their streams to have one shard
	// A test that goes wild ends here.
	maxCalls = 2_000_000
)

// prices are of us-east-1 in USD.
var prices = struct {
	asOf                           string
	instanceHour, gibMonth         float64
	millionWrites, millionRequests float64
	writeHour, readHour            float64 // of a unit of capacity
}{"March 2026", 0.036, 0.122, 0.625, 0.40, 0.00065, 0.00013}

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

// plan says what a run creates, what it costs and how long it takes. search is
// whether a test needs OpenSearch.
func plan(o options, a *account, search bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if a.local {
		line("Local servers: this run proves the suite's own code. It costs nothing.")
	} else {
		line("Account %s, Region %s, as %s.", a.id, a.cfg.Region, a.arn)
		line("Nothing in it is read or changed but what is made here:")
	}
	line("")
	line("  tables   up to %d, named %s-…, small; each goes with its test", usualTables, o.prefix)
	line("  queues   up to %d, named %s-…", usualQueues, o.prefix)
	if o.pkg != "" || o.run != "" {
		line("           (the whole suite: this run makes fewer)")
	}
	domain := search && o.opensearch == ""
	if domain {
		line("  domain   %s: one %s with %d GiB, %s; only you may use it, by signed requests", domainName(o.prefix), instanceType, volumeGiB, o.engine)
	} else if search {
		line("  domain   none: the indices are made in %s", o.opensearch)
	}
	if !a.local {
		hours := prices.instanceHour + prices.gibMonth*volumeGiB/730
		line("")
		line("Cost, by the prices of %s in %s. The pages have today's:", region, prices.asOf)
		if domain {
			line("  domain   %.2f USD for each hour begun (%.3f the instance, %.3f USD the GiB-month)", hours, prices.instanceHour, prices.gibMonth)
			line("           https://aws.amazon.com/opensearch-service/pricing/")
		}
		line("  tables   %.3f USD for a million writes; a run makes about 0.1 million", prices.millionWrites)
		line("           %.2f USD an hour for each of up to %d that have a capacity of %d units", localtest.ShardUnits*(prices.writeHour+prices.readHour), oneShard, localtest.ShardUnits)
		line("           https://aws.amazon.com/dynamodb/pricing/")
		line("  queues   %.2f USD for a million requests; a run makes about 5,000", prices.millionRequests)
		line("           https://aws.amazon.com/sqs/pricing/")
		line("  in all   below 3 USD. The suite ends after %v, and its tests get %d requests at most.", o.timeout, maxCalls)
		line("")
		if domain {
			line("Time: about an hour, half of it until the domain is there.")
		} else {
			line("Time: about half an hour.")
		}
		line("")
		line("Rights: those of internal/cmd/awssuite/policy.json are enough.")
		line("")
		line("At its end, also after Ctrl-C, the suite removes by name what it made, and only what has")
		line("its tag %s. Should it be killed: make aws CLEANUP=1 PREFIX=%s", tagKey, o.prefix)
	}
	line("")
	return b.String()
}

func parallel(a *account) int {
	if a.local {
		return 3
	}
	return 8
}
