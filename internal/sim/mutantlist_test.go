//go:build integration

package sim

// mutants is what the simulation must catch. A bug that is found adds one,
// which brings it back.
var mutants = []mutant{
	// Positions.
	{
		name: "checkpoint of what was submitted", file: "sources/poller/worker.go",
		old:   `string(w.pos.Settle(w.flow.Settled()))`,
		new:   `string(w.pos.Settle(w.pos.Added()))`,
		props: []string{propAhead, propLost},
	},
	{
		name: "position one record ahead", file: "sources/poller/internal/positions/positions.go",
		old:   `k := min(int(n-r.first)+1, r.len())`,
		new:   `k := min(int(n-r.first)+2, r.len())`,
		props: []string{propAhead, propLost},
	},
	{
		name: "positions of other widths in one run", file: "sources/poller/internal/positions/positions.go",
		old:   `if r == nil || r.width != len(seq) || r.len() == cap(r.times) {`,
		new:   `if r == nil || r.len() == cap(r.times) {`,
		props: []string{propContent, propRun},
	},
	{
		name: "watermark counts what is settled", file: "flow/window.go",
		old:   `if ord != w.low+1 {`,
		new:   `if false {`,
		props: []string{propAhead, propLost},
	},
	{
		name: "positions compared as strings", file: "state/rules.go",
		old:   `return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))`,
		new:   `return cmp.Or(strings.Compare(a, b), cmp.Compare(len(a), len(b)))`,
		props: []string{propAhead, propRest, propStop},
	},
	{
		name: "sequence numbers compared as strings", file: "sequence.go",
		old:   `return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))`,
		new:   `return cmp.Or(strings.Compare(a, b), cmp.Compare(len(a), len(b)))`,
		props: []string{propLost, propAhead, propRest, propDuplicate},
	},
	{
		name: "closed shard finished unsettled", file: "sources/poller/worker.go",
		old:   `case end == EndFinished && err == nil:`,
		new:   `case end == EndFinished && (err == nil || true):`,
		props: []string{propAhead, propLost},
	},
	{
		name: "one denial taken for the end of a stream", file: "sources/poller/join.go", from: 981007500,
		old:   `if !s.unlisted && s.denials > 0 && len(stored) == 0 {`,
		new:   `if s.denials > 0 && len(stored) == 0 {`,
		props: []string{propStop, propRest},
	},
	{
		name: "failed write taken for stored", file: "sources/poller/internal/checkpoints/checkpoints.go",
		old:   `case err == nil:`,
		new:   `case !errors.Is(err, state.ErrLeaseLost):`,
		props: []string{propRest, propStop, propChild},
	},
	{
		name: "no last write at a stop", file: "sources/poller/worker.go",
		old:   "\tif lost {\n\t\treturn end, cause\n",
		new:   "\tif lost || end == EndStopped {\n\t\treturn end, cause\n",
		props: []string{propStop},
	},
	{
		name: "grace without an end", file: "internal/latectx/latectx.go",
		old:   `timer = time.AfterFunc(d, cancel)`,
		new:   `timer = time.AfterFunc(1000*d, cancel)`,
		props: []string{propStop},
	},
	{
		name: "flush sleeps through the write of another", file: "sources/poller/internal/checkpoints/checkpoints.go", of: new(uint64(fullKind)),
		old:   `try.Reset(c.config.RetryIn(failures))`,
		new:   `select { case <-time.After(c.config.RetryIn(failures)): case <-ctx.Done(): return err }; try.Reset(0)`,
		props: []string{propStop, propRest},
	},

	// Lineage and discovery.
	{
		name: "child beside its parent", file: "sources/poller/internal/lineage/lineage.go",
		old:   `return !p.settled()`,
		new:   `return false`,
		props: []string{propChild, propOrder},
	},
	{
		name: "child before its parent's end is stored", file: "sources/poller/worker.go",
		old:   "\t\tw.finished.Store(true)\n",
		new:   "\t\tw.finished.Store(true)\n\t\treturn EndFinished, nil\n",
		props: []string{propChild},
	},
	{
		name: "one listing says that a shard is gone", file: "sources/poller/internal/lineage/lineage.go",
		old:   `const Confirmations = 2`,
		new:   `const Confirmations = 1`,
		props: []string{propLost},
	},
	{
		name: "parent that no listing shows taken for trimmed", file: "sources/poller/internal/lineage/lineage.go",
		old:   `return !n.stored && !n.parentOver`,
		new:   `return false`,
		props: []string{propChild, propOrder},
	},
	{
		name: "ancestor from before the start read beside its descendants", file: "sources/poller/worker.go", from: 701677,
		old:   `if w.start.Gone || w.start.Past && stored.Position.Sequence == "" {`,
		new:   `if w.start.Gone {`,
		props: []string{propOrder},
	},
	{
		name: "first page of a listing only", file: "sources/poller/discover.go",
		old:   `if asked[from] { // empty, or the service goes round in circles`,
		new:   `if true {`,
		props: []string{propRest},
	},

	// Reading.
	{
		name: "last page dropped", file: "sources/poller/worker.go",
		old:   `if err := w.take(reading, pg); err != nil {`,
		new:   `if pg.last { return EndFinished, <-ended }; if err := w.take(reading, pg); err != nil {`,
		props: []string{propLost},
	},
	{
		name: "expired iterator retried for ever", file: "sources/poller/reader.go",
		old:   "\tcase expired:\n\t\tr.iterator = \"\"\n",
		new:   "\tcase expired:\n",
		props: []string{propRest},
	},
	{
		name: "LATEST on a new shard", file: "sources/poller/reader.go",
		old:   `ShardIteratorType: types.ShardIteratorTypeTrimHorizon,`,
		new:   `ShardIteratorType: types.ShardIteratorTypeLatest,`,
		props: []string{propLost, propOrder, propRest},
	},
	{
		name: "start at LATEST a moment too late", file: "sources/poller/join.go",
		old:   `At: date.Add(-lineage.ClockMargin -`,
		new:   `At: date.Add(3*lineage.ClockMargin -`,
		props: []string{propLost, propOrder, propRest},
	},
	{
		name: "iterator behind the page that is to come", file: "sources/poller/reader.go",
		old:   "\tr.backoff.reset()\n\tr.iterator = pg.NextShardIterator\n",
		new:   "\tr.backoff.reset()\n\tif r.iterator != \"\" && len(pg.Records) > 0 && r.backoff.failures == 0 && pg.NextShardIterator != \"\" && r.after == \"\" { pg.Records = pg.Records[1:] }\n\tr.iterator = pg.NextShardIterator\n",
		props: []string{propLost, propOrder, propRest},
	},
	{
		name: "claim that failed taken for one", file: "sources/poller/worker.go",
		old:   "\tstored, err := w.claim(ctx)\n\tif err != nil {",
		new:   "\tstored, err := w.claim(ctx)\n\tif held(err) {",
		props: []string{propContent, propDuplicate, propRest, propStop},
	},

	// Gaps.
	{
		name: "trim passed over in silence", file: "sources/poller/reader.go",
		old:   "\tg, err := r.gap(ctx, r.after)\n",
		new:   "\tg, err := &sluice.Gap{}, ctx.Err()\n",
		props: []string{propLost, propRest},
	},
	{
		name: "a trim that is none repeats what was read", file: "sources/poller/worker.go",
		old:   "\t\tw.skipTo = lastIn(recs, w.skipTo)\n",
		new:   "",
		props: []string{propDuplicate, propOrder, propAhead},
	},
	{
		name: "gap told before it is durable", file: "sources/poller/report.go",
		old:   "\t\t\tif sleep(ctx, wait) == nil {\n",
		new:   "\t\t\tif name == parkGap {\n\t\t\t\tp.health.store(name, nil)\n\t\t\t\treturn nil\n\t\t\t}\n\t\t\tif sleep(ctx, wait) == nil {\n",
		props: []string{propLost, propRest},
	},
	{
		name: "shard that is gone passed over in silence", file: "sources/poller/worker.go",
		old:   `if _, err := w.gap(ctx, after, true); err != nil {`,
		new:   `if ctx.Err() != nil {`,
		props: []string{propLost},
	},

	{
		name: "lost beginning passed over in silence", file: "sources/poller/internal/lineage/beginning.go",
		old:   `return b.Ours(now) && b.created.Before(now.Add(early-Retention))`,
		new:   `return false`,
		props: []string{propLost, propRest},
	},
	{
		name: "next stream beside the one before", file: "sources/poller/follow.go",
		old:   `waits = waits || !g.waived && g.phase != unfit`,
		new:   `waits = false`,
		props: []string{propChild, propOrder},
	},
	{
		name: "next stream from its end", file: "sources/poller/join.go",
		old:   `state.Start{Position: TrimHorizon})`,
		new:   `state.Start{Position: Latest, At: time.Now().Add(time.Hour)})`,
		props: []string{propLost, propRest, propOrder},
	},
	{
		name: "replaced stream over at the first sign", file: "sources/poller/generation.go",
		old:   `const sureAfter = 4`,
		new:   `const sureAfter = 0`,
		props: []string{propRest, propChild, propOrder, propLost},
	},
	{
		name: "quota not given back", file: "sources/poller/worker.go", of: new(uint64(bigKind)),
		old:   `page := flow.Page{Records: recs, Bytes: rest, Freed: w.quota.Free}`,
		new:   `page := flow.Page{Records: recs, Bytes: rest, Freed: func(int64) {}}`,
		props: []string{propRest},
	},

	// Flow and dead letters.
	{
		name: "no order within an item", file: "flow/lane.go",
		old:   "\tif before == nil {\n\t\tl.ready(e)",
		new:   "\tif true {\n\t\tl.ready(e)",
		props: []string{propOrder},
	},
	{
		name: "dead letters that failed taken for parked", file: "flow/park.go",
		old:   "\tw.returned()\n\tif err != nil {\n\t\tw.parkFailed(t, err)",
		new:   "\tw.returned()\n\tif false {\n\t\tw.parkFailed(t, err)",
		props: []string{propAhead, propLost},
	},
	{
		name: "one dead letter for all routes", file: "deadletter/entry.go",
		old:   `fmt.Fprintf(h, "%q %q %q", e.StreamARN, e.EventID, route)`,
		new:   `fmt.Fprintf(h, "%q %q", e.StreamARN, e.EventID)`,
		props: []string{propLost},
	},
	{
		name: "outage that is never seen", file: "flow/gate.go", of: new(uint64(trialKind)),
		old:   `case !g.outage.on && ((news || g.firsts == 0) && g.fresh.lasts(outageAfter, now) || g.streak.lasts(g.quiet(), now)):`,
		new:   `case false:`,
		props: []string{propReady, propPace},
	},
	{
		name: "outage that never ends", file: "flow/gate.go", of: new(uint64(trialKind)),
		old:   "\t\tif g.outage.on {\n\t\t\tg.limiter.restart",
		new:   "\t\tif g.outage.on && g.outage.number < 0 {\n\t\t\tg.limiter.restart",
		props: []string{propPace},
	},
	{
		name: "behind poison one failure is enough", file: "flow/judge.go", of: new(uint64(trialKind)),
		old:   `h.parked && h.vouched ||`,
		new:   `h.parked ||`,
		props: []string{propPark},
	},
	{
		name: "partial outage that is never seen", file: "flow/gate_state.go", of: new(uint64(trialKind)),
		old:   `return g.items.failing > 0 && now.Sub(g.crowded) < partialAtLeast`,
		new:   `return false`,
		props: []string{propReady},
	},
	{
		name: "limit that is never learned", file: "flow/aimd.go", of: new(uint64(trialKind)),
		old:   `l.limit, l.doubles, l.cutAt = max(1, limit), false, now`,
		new:   `l.doubles, l.cutAt = false, now`,
		props: []string{propPace},
	},
	{
		name: "limit that is never raised", file: "flow/aimd.go", of: new(uint64(trialKind)),
		old:   "\t\tl.ceiling = 0\n\t\tl.limit += 1 / l.limit\n",
		new:   "",
		props: []string{propPace},
	},
	{
		name: "concurrency of a route not heeded", file: "flow/gate.go",
		old:   `g.concurrency > 0 && g.running >= g.concurrency {`,
		new:   `false {`,
		props: []string{propLimit},
	},
	{
		name: "rate of a route not heeded", file: "flow/throttle.go",
		old:   `if g.fill(now); g.tokens >= 1 {`,
		new:   `if g.fill(now); true {`,
		props: []string{propLimit},
	},
	{
		name: "one failed claim, unready for ever", file: "sources/poller/worker.go",
		old:   "\tw.p.health.store(claimShard, nil)\n",
		new:   "",
		props: []string{propRest},
	},

	// The state file.
	{
		name: "state file forgets positions", file: "state/boltstate/positions.go", of: new(uint64(diskKind)),
		old:   "\t\t\tif err := putShard(b, sh); err != nil {\n\t\t\t\treturn err\n\t\t\t}\n\t\t}\n\t\treturn nil\n\t})\n\tswitch {",
		new:   "\t\t\t_ = sh\n\t\t}\n\t\treturn nil\n\t})\n\tswitch {",
		props: []string{propContent, propDuplicate},
	},
	{
		name: "state file forgets the end of a shard", file: "state/boltstate/positions.go", of: new(uint64(diskKind)),
		old:   `Position: state.Position{Sequence: v.Sequence, Finished: v.Finished, Ahead: v.Ahead},`,
		new:   `Position: state.Position{Sequence: v.Sequence, Ahead: v.Ahead},`,
		props: []string{propContent, propDuplicate, propAhead},
	},
	{
		name: "state file forgets dead letters", file: "state/boltstate/letters.go", of: new(uint64(diskKind)),
		old:   `return errors.Join(letters.Put([]byte(id), data), labels.Put([]byte(id), label))`,
		new:   `_ = letters; return errors.Join(labels.Put([]byte(id), label))`,
		props: []string{propLost},
	},
}
