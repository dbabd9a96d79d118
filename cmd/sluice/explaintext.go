package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fatih/color"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
)

// text is an explanation for people.
func (x *explainer) text(rec *sluice.Record, e explanation) string {
	p := x.cli.paint()
	var b strings.Builder
	if x.n > 1 {
		b.WriteByte('\n')
	}
	typ := cmp.Or(e.Type, "-")
	fmt.Fprintf(&b, "%s  %s  %s\n", p.event(e.Event), p.bold(plain(typ)), keyText(rec.Keys))
	if e.Error != "" {
		fmt.Fprintf(&b, "  %s %s\n", p.bad("takes no route, and fails for good:"), plain(e.Error))
	}
	for _, r := range e.Routes {
		if r.Takes {
			fmt.Fprintf(&b, "  %s %s%s\n", p.good("takes"), p.in(plain(r.Route), color.FgCyan), kind(r))
			for _, effect := range r.Effects {
				fmt.Fprintf(&b, "        %s\n", effectText(effect))
			}
		} else {
			fmt.Fprintf(&b, "  %s %s%s: %s\n", p.faint("not  "), plain(r.Route), kind(r), p.faint(plain(r.Why)))
		}
		if r.Error != "" {
			fmt.Fprintf(&b, "        %s %s\n", p.bad("would fail:"), plain(r.Error))
		}
	}
	return b.String()
}

func kind(r explainedRoute) string {
	if r.Kind == "" {
		return ""
	}
	return " (" + r.Kind + ")"
}

func effectText(e config.Effect) string {
	text := plain(e.Does)
	if e.Key != "" && !strings.Contains(e.Does, e.Key) {
		text += ", " + plain(e.Key)
	}
	if e.Detail != "" {
		text += "\n          " + plain(e.Detail)
	}
	return text
}
