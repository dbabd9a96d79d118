//go:build unix

package fleettest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/streamtest"
)

// sent makes messages of the texts "item version", each with its own id.
func sent(texts ...string) (messages []local.Message) {
	for _, text := range texts {
		name, version, _ := strings.Cut(text, " ")
		messages = append(messages, local.Message{
			ID: fmt.Sprint(len(messages)), MessageBody: fmt.Sprintf(`{"item":%q,"version":%s}`, name, version), MessageDeduplicationID: text,
		})
	}
	return messages
}

func TestWrong(t *testing.T) {
	written := map[string]int{"a": 3, "b": 1}
	for _, tt := range []struct {
		name    string
		sent    []local.Message
		want    string // of what is wrong; none: nothing is
		missing int
	}{
		{"all", sent("a 1", "b 1", "a 2", "a 3"), "", 0},
		{"repeated late", sent("a 1", "a 2", "a 3", "b 1", "a 1", "a 2"), "", 0},
		{"lost at the end", sent("a 1", "b 1", "a 2"), "item a was written to version 3: from effect 3 on come versions []", 1},
		{"lost before others", sent("a 1", "a 3", "b 1"), "item a was written to version 3: from effect 2 on come versions [3]", 1},
		{"lost item", sent("a 1", "a 2", "a 3"), "item b was written to version 1: from effect 1 on come versions []", 1},
		{"out of order", sent("a 2", "a 1", "a 3", "b 1"), "item a was written to version 3: from effect 1 on come versions [2 1 3]", 0},
		{"too many", sent("a 1", "a 2", "a 3", "a 4", "b 1"), "item a was written to version 3: from effect 4 on come versions [4]", 0},
		{"never written", sent("a 1", "a 2", "a 3", "b 1", "c 1"), "item c was never written", 0},
		{"no effect", append(sent("a 1", "a 2", "a 3", "b 1"), local.Message{MessageBody: "x", MessageDeduplicationID: "x"}), `message "x" is no effect`, 0},
	} {
		var e Effects
		e.receive("w", tt.sent)
		wrong := e.Wrong(written)
		if got := strings.Join(wrong, "\n"); len(wrong) > 1 || (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if got := e.Missing(written); got != tt.missing {
			t.Errorf("%s: %d are missing, want %d", tt.name, got, tt.missing)
		}
	}
}

func TestRepeated(t *testing.T) {
	var e Effects
	e.receive("one", sent("a 1", "a 2"))
	e.receive("two", sent("a 2", "a 3"))
	var got []string
	for _, f := range e.All(1) {
		got = append(got, fmt.Sprintf("%s %s %d %v", f.Worker, f.Item, f.Version, f.Repeated))
	}
	if want := []string{"one a 2 false", "two a 2 true", "two a 3 false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOnePerShard(t *testing.T) {
	const shards = 40
	s := streamtest.NewService(t)
	table := s.CreateTable("other", streamtest.TableOptions{Shards: shards})
	for _, name := range OnePerShard(shards) {
		table.Put(map[string]any{"pk": name})
	}
	for i, sh := range table.Shards() {
		if sh.First == "" || sh.First != sh.Last {
			t.Errorf("shard %d has not one item: %+v", i, sh)
		}
	}
}
