package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/statestore"
)

// applicationsWithLetters are the applications of a state file that have dead letters.
func applicationsWithLetters(ctx context.Context, store statestore.Store) (have []string, err error) {
	apps, err := store.Applications(ctx)
	if err != nil {
		return nil, err
	}
	for _, app := range apps {
		letters, err := store.ListLetters(ctx, app, "", 1)
		if err != nil {
			return nil, err
		}
		if len(letters) > 0 {
			have = append(have, app)
		}
	}
	return have, nil
}

// warnOfApplication lists the applications of a state file with dead letters, if
// the chosen one has none. A program chooses its own application name, so a user
// without a configuration file would only read that nothing is parked.
func (p *letterPlace) warnOfApplication(ctx context.Context, store statestore.Store, app, where string) error {
	have, err := applicationsWithLetters(ctx, store)
	hint := ""
	switch {
	case err != nil || len(have) == 0 || slices.Contains(have, app):
		return err
	case len(have) == 1:
		hint = fmt.Sprintf("the application %s has some: say --application %[1]s", have[0])
	default:
		hint = "others have some: say by --application which: " + strings.Join(have, ", ")
	}
	fmt.Fprintf(p.c.stderr, "the application %q has no dead letters in %s: %s\n", app, where, hint)
	return nil
}
