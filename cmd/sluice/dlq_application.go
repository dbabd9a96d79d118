package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice/state/boltstate"
)

// warnOfApplication says which applications of a state file have dead letters,
// when the chosen one has none. A program has given itself its name, and who has
// no file that says it would be told that nothing is parked.
func (p *letterPlace) warnOfApplication(ctx context.Context, store *boltstate.Store, app, where string) error {
	apps, err := store.Applications(ctx)
	if err != nil {
		return err
	}
	var have []string
	for _, other := range apps {
		switch letters, err := store.ListLetters(ctx, other, "", 1); {
		case err != nil:
			return err
		case len(letters) > 0 && other == app:
			return nil
		case len(letters) > 0:
			have = append(have, other)
		}
	}
	hint := ""
	switch len(have) {
	case 0:
		return nil
	case 1:
		hint = fmt.Sprintf("the application %s has some: say --application %[1]s", have[0])
	default:
		hint = "others have some: say by --application which: " + strings.Join(have, ", ")
	}
	fmt.Fprintf(p.c.stderr, "the application %q has no dead letters in %s: %s\n", app, where, hint)
	return nil
}
