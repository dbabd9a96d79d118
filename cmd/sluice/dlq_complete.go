package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/letters"
)

const (
	many         = 1 << 30 // ids that a command takes
	mostRead     = 1000    // letters that are looked at for a shell
	mostProposed = 50      // of which it shows so many
)

// complete proposes letter ids to a shell, for a command that takes ids of them.
// They come from the running daemon, or from a state file that no daemon holds. It
// does not open a separate letter file or a queue, because that would lock them.
// After a failure or a second it proposes nothing.
func (p *letterPlace) complete(ids int) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= ids || p.file != "" || p.queue != "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var proposals []string
		all := soon(cmd.Context(), func(ctx context.Context) []letters.Outline { return p.propose(ctx, begun) })
		short := shortIDs(all)
		for i, o := range all {
			id := short[i]
			if !strings.HasPrefix(id, begun) {
				id = o.ID
			}
			named := func(arg string) bool { return arg != "" && letters.HasPrefix(o.ID, arg) }
			if strings.HasPrefix(id, begun) && !slices.ContainsFunc(args, named) && len(proposals) < mostProposed {
				proposals = append(proposals, id+"\t"+proposed(o))
			}
		}
		return proposals, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// proposed says in a few words which letter it is.
func proposed(o letters.Outline) string {
	if o.Kind == "gap" {
		return plain("gap, " + o.Table)
	}
	return cutText(strings.TrimSpace(routeName(o.Route, o.Kind)+", "+o.Table+" "+string(o.Keys)), 60)
}

// propose lists the first letters that may begin so.
func (p *letterPlace) propose(ctx context.Context, begun string) []letters.Outline {
	quiet := *p.c
	quiet.stderr = io.Discard
	silent := *p
	silent.c = &quiet
	l, err := silent.openNow(ctx)
	if err != nil {
		return nil
	}
	defer func() { _ = l.close() }()
	after := ""
	if strings.Contains(begun, "-") { // the whole of an id; else the end of any may begin so
		after = begun
	}
	page, err := l.api.list(ctx, deadletter.Filter{}, after, mostRead)
	if err != nil {
		return nil
	}
	return page.DeadLetters
}

// openNow is open for the daemon and the state file, without waiting for its lock.
func (p *letterPlace) openNow(ctx context.Context) (*lettersOpen, error) {
	cfg, err := p.c.loadMaybe()
	if err != nil {
		return nil, err
	}
	o, store, err := p.reach(ctx, cfg, time.Nanosecond)
	if o != nil || err != nil {
		return o, err
	}
	return p.inside(ctx, false, letters.NewBox(store, p.name(cfg)), "", store.Close)
}
