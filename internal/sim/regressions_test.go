package sim

import "testing"

// regressions are seeds that found something. A seed is the same history only
// as long as plans are drawn as they are; what keeps a bug away for good is its
// mutant. Whoever changes the plan may bring them up to date with the seeds that
// TestMutants names.
var regressions = []struct {
	seed uint64
	what string
}{
	{5, "one claim that failed, and unready for ever"},
	{313, "whoever waited for a position to be stored slept through the write that did it"},
	{700304, "a dead letter was parked under a mutex, while the store took its time to delete another"},
	{701677, "an ancestor that the listing of a start at LATEST had left out was read beside its descendants"},
	{982019302, "a stream behind another was expected sooner than listings that leave shards out allow"},
	{986113217, "the child of a shard that ended was expected before five listings of 16 pages each"},
	{983004987, "a record was expected to be read past a route's only call, which hung"},
	{989142100, "records that waited for dead letters to be listed, once the state had room again, were taken for unread"},
	{989173344, "a record that was trimmed behind a gap before any record after the gap was read was expected to be handled"},
	{1795510438370, "a shard from before the start was handled beside its descendant, because an ancestor of it had been read"},
	{987022842, "a stream that was found gone while the poller stopped failed the stop"},
	{994046123, "a parent was made, and closed, while a listing of many pages ran that showed its children only"},
	{450, "shards that ended together put off the next listing, and with it the next stream"},
}

func TestRegressions(t *testing.T) {
	for _, r := range regressions {
		t.Run(r.what, func(t *testing.T) {
			for _, v := range run(t, r.seed, false).check.failed() {
				t.Errorf("seed %d: %v", r.seed, v)
			}
		})
	}
}
