package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

func letterKeys(t *testing.T) letterkeys.Keys {
	t.Helper()
	keys, err := letterkeys.Find(func(name string) string {
		return map[string]string{access.LetterKeyEnv: "0123456789abcdef0123456789abcdef"}[name]
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// signed is a store whose letters others may write.
type signed struct {
	state.Letters
	letterkeys.Keys
}

// --unsigned runs the letters that it names. Other unsigned letters stay.
func TestRedriveOfUnsigned(t *testing.T) {
	store := state.NewMemory()
	plain := deadletter.NewBox(store, "app")
	var ids []string
	for n := range 3 {
		rec := recordtest.New(recordtest.Spec{Keys: fmt.Sprintf(`{"pk":{"S":"%d"}}`, n), Sequence: recordtest.Sequence(n + 1), Shard: "shard"})
		if err := plain.Park(t.Context(), &rec, sluice.Failure{Route: "r", Attempts: 1, First: errors.New("down"), Last: errors.New("down")}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, letters.ShortID(plain.ID(&rec, "r")))
	}
	m := router.New()
	m.Handle("*#*", sluiceNothing, router.Name("r"), router.Redrive())
	daemon := daemon.DeadLetters(t.Context(), letters.NewBox(signed{store, letterKeys(t)}, "app"), "", m, nil, discard)
	if code, out, problems := asked(t, daemon, "dlq", "redrive", "--all"); code != 1 || strings.Count(out, ": refused: it is not signed") != 3 {
		t.Errorf("exit %d, %s%s", code, out, problems)
	}
	if code, _, problems := asked(t, daemon, "dlq", "redrive", "--all", "--unsigned", "ffff0000"); code != 1 || !strings.Contains(problems, "--unsigned: no such dead letter: ffff0000") {
		t.Errorf("exit %d, %s", code, problems)
	}
	if code, out, problems := asked(t, daemon, "dlq", "redrive", ids[0], "--unsigned", ids[1]); code != 1 || !strings.Contains(out, ids[0]+": refused") || !strings.Contains(out, ids[1]+": done") {
		t.Errorf("exit %d, %s%s", code, out, problems)
	}
	if code, out, problems := asked(t, daemon, "dlq", "redrive", "--unsigned", ids[0], "--unsigned", ids[2]); code != 0 || !strings.Contains(out, "2 done") {
		t.Errorf("exit %d, %s%s", code, out, problems)
	}
}
