//go:build integration

package sim

// fleetMutants are what the simulation of a fleet must catch, in package
// state/dynamostate.
var fleetMutants = []mutant{
	// Who lives.
	{
		name: "fenced after a second", file: "state/dynamostate/watch.go",
		old: `case s.watched < silentAfter:`, new: `case s.watched < silentAfter/4:`,
	},
	{
		name: "listed members are fenced after a second", file: "state/dynamostate/watch.go",
		old: `!s.dead() && s.watched >= silentAfter {`, new: `!s.dead() && s.watched >= silentAfter/4 {`,
	},
	{
		name: "claim before the fence", file: "state/dynamostate/watch.go",
		old: `case !fence:`, new: `case true:`,
	},
	{
		name: "a pause of the observer counts as silence", file: "state/dynamostate/watch.go",
		old: `s.watched += min(now.Sub(s.looked), maxLook)`, new: `s.watched += 10 * now.Sub(s.looked)`,
	},
	{
		name: "heartbeats are not counted", file: "state/dynamostate/members.go",
		old: `next.Beats, next.Released = next.Beats+1,`, new: `next.Beats, next.Released = next.Beats,`,
	},
	{
		name: "nobody looks at the dead", file: "state/dynamostate/watch.go",
		old: `s.watched += min(now.Sub(s.looked), maxLook)`, new: `s.watched += 0`,
	},
	{
		name: "a fenced owner goes on", file: "state/dynamostate/members.go",
		old: `o.row, o.stored.Fenced = row, have.Fenced || have.Store != m.store`, new: `o.row, o.stored.Fenced = row, false`,
	},
	// The own deadline.
	{
		name: "no deadline", file: "sources/poller/owner.go",
		old: `passed < o.silent-o.silent/10`, new: `passed < 100*o.silent`,
	},
	// Leases and positions.
	{
		name: "positions without a lease", file: "state/rules.go",
		old: `if s.Owner == "" || s.Owner != l.Owner || s.Epoch != l.Epoch {`, new: `if false {`,
	},
	{
		name: "a child's epoch is its own", file: "state/rules.go",
		old: `max(s.Epoch, parent.Epoch) + 1`, new: `s.Epoch + 1`,
	},
	{
		name: "claims go back in epochs", file: "state/rules.go",
		old: `max(s.Epoch, parent.Epoch) + 1`, new: `1`,
	},
	{
		name: "living owners are robbed", file: "state/dynamostate/shards.go",
		old: `			if living {
				holder = sh.Owner
				return sh,`, new: `			if living && false {
				holder = sh.Owner
				return sh,`,
	},
	{
		name: "position of what was read", file: "sources/poller/worker.go",
		old: `Sequence: string(w.pos.Settle(w.flow.Settled()))`, new: `Sequence: string(w.pos.Settle(w.pos.Added()))`,
	},
	// What moves.
	{
		name: "release before the drain", file: "sources/poller/worker.go",
		old: `	_, err := w.flow.Close(t.handlers)
	lost :=`, new: `	var err error
	lost :=`,
	},
	{
		name: "moved shards are not released", file: "sources/poller/balance.go",
		old: `		v.move()
`, new: `		_ = v.move
`,
	},
	{
		name: "moves to the one with the most", file: "state/dynamostate/balance.go",
		old: `return cmp.Or(b.shards-a.shards, strings.Compare(a.name, b.name))`, new: `return cmp.Or(a.shards-b.shards, strings.Compare(a.name, b.name))`,
	},
	{
		name: "nobody moves", file: "state/dynamostate/balance.go",
		old: `if !leaving && (!o.settled() || offered > 0) {`, new: `if !leaving && offered >= 0 {`,
	},
	// What is settled ahead.
	{
		name: "nothing is settled ahead", file: "sources/poller/worker.go",
		old: `p.Ahead = *left`, new: `p.Ahead = ""`,
	},
	// A reload.
	{
		name: "a reload waits for what fails", file: "flow/handover.go",
		old: `g.handsOver.Store(true)`, new: `g.handsOver.Store(false)`,
	},
}

// testedMutants are of a fleet, too. A test must catch each.
var testedMutants = []mutant{
	{
		name: "news of others count as heartbeats", file: "state/dynamostate/watch.go", test: "TestNewsIsNoHeartbeat",
		old: `|| s.stored.Beats != before.Beats)`, new: `|| true)`,
	},
	{
		name: "a heartbeat of another name proves", file: "sources/poller/owner.go", test: "TestAdmit",
		old: `if p.of == of && passed`, new: `if passed`,
	},
	{
		name: "deadline from the answer", file: "sources/poller/owner.go", test: "TestALateAnswerProvesNoLongerLife",
		old: `&proof{of, sent, sent.Round(0),`, new: `&proof{of, time.Now(), time.Now().Round(0),`,
	},
	{
		name: "a lost answer taken for a refusal", file: "internal/rows/dynamodb.go", test: "TestWriteWhoseResponseIsLost",
		old: `if have.Token == now.Token {`, new: `if false {`,
	},
	{
		name: "a gift waits for its owner for ever", file: "state/dynamostate/handoff.go", test: "TestReservationEnds",
		old: `s.reserve(k, sh.Epoch) < reservedFor {`, new: `s.reserve(k, sh.Epoch) < 100*reservedFor {`,
	},
	{
		name: "the first takes all of the dead", file: "state/dynamostate/handoff.go", test: "TestShareOfTheDead",
		old: `m.shards(app, owner) >= share`, new: `share < 0`,
	},
	{
		name: "balance for ever", file: "state/dynamostate/balance.go", test: "TestPlan",
		old: `<= max(1, total/len(loads)/10)`, new: `<= -1`,
	},
	{
		name: "two first starts in a second", file: "sources/poller/join.go", test: "TestLatestOvertaken",
		old: `rand.N(time.Second)`, new: `0*rand.N(time.Second)`,
	},
	{
		name: "ahead of what was submitted", file: "sources/poller/internal/positions/ahead.go", test: "TestAheadNamesTheUnsettled",
		old: `p.name(submitted)`, new: `p.name(p.last)`,
	},
	{
		name: "what an earlier reader settled is forgotten", file: "sources/poller/internal/positions/ahead.go", test: "TestAheadOfWhatTheReaderBeforeHadSettled",
		old: `&& before.Past(p.settled)`, new: ``,
	},
	{
		name: "a backfill's segment is finished by who lost it", file: "internal/snapshot/fleet.go", test: "TestFencedFinish",
		old: `		if err == nil {
			err = f.book.put(ctx, name, m)
		}
`, new: `		err = f.book.put(ctx, name, m)
`,
	},
	{
		name: "a lost job goes on", file: "internal/job/job.go", pkg: "state/dynamostate", test: "TestHoldJob",
		old: `lose(fmt.Errorf("%s: %w: %w", name, ErrLost, err))`, new: `_ = err`,
	},
}
