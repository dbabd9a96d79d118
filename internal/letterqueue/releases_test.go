package letterqueue

import (
	"bytes"
	"context"
	"crypto/rand"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/releasetest"
)

var update = flag.Bool("update", false, "write the messages of this release, unless they exist")

// The messages of all releases are read, and their signatures proven: letters as they
// are, compressed, and, from a queue of small messages, by reference.
func TestReleases(t *testing.T) {
	keys, err := letterkeys.Find(func(name string) string {
		return map[string]string{access.LetterKeyEnv: "0123456789abcdef0123456789abcdef"}[name]
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	received := func(t *testing.T, path string) *Letters {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		q := &Letters{app: releasetest.App, keys: keys, letters: make(map[string][]byte), handles: make(map[string][]string)}
		for body := range strings.Lines(string(data)) {
			q.add(types.Message{Body: aws.String(strings.TrimSuffix(body, "\n"))})
		}
		return q
	}
	const most = 17 << 10
	write := func(park func(*testing.T, deadletter.Sender)) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			var text bytes.Buffer
			park(t, deadletter.Sender(func(_ context.Context, _ deadletter.Entry, letter []byte) error {
				text.Write(append(keys.Sign(letter), '\n'))
				return nil
			}).AtMost(most-letterkeys.SignatureBytes))
			if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	releasetest.Each(t, "messages.jsonl", *update, write(func(t *testing.T, s deadletter.Sender) {
		releasetest.Park(t, s.Park)
	}), func(t *testing.T, path string) {
		q := received(t, path)
		for id, body := range q.letters {
			if err := keys.Verify(body); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		if text := strings.Join(bodies(q), "\n"); !strings.Contains(text, `"recordGzip"`) || !strings.Contains(text, `"recordBase64"`) {
			t.Error("no letter is compressed, or none is no JSON")
		}
		releasetest.CheckLetters(t, withoutQueue{q}, 0)
	})
	const keysOf = `{"pk":{"S":"o-3"}}`
	releasetest.Each(t, "reference.jsonl", *update, write(func(t *testing.T, s deadletter.Sender) {
		note := ""
		for len(note) < 4*most { // compression does not help
			note += rand.Text()
		}
		rec := recordtest.New(recordtest.Spec{Keys: keysOf, New: `{"pk":{"S":"o-3"},"note":{"S":"` + note + `"}}`, Sequence: recordtest.Sequence(3), Shard: "shardId-1"})
		if err := s.Park(t.Context(), &rec, sluice.Failure{Route: "search", Attempts: 8}); err != nil {
			t.Fatal(err)
		}
	}), func(t *testing.T, path string) {
		all, _, err := deadletter.NewBox(received(t, path), releasetest.App).List(t.Context(), "", 10)
		if err != nil || len(all) != 1 || all[0].Unverified != "" || all[0].Ref == nil || string(all[0].Ref.Keys.Raw()) != keysOf || all[0].Ref.Bytes < most || all[0].Ref.Created.IsZero() || all[0].Sequence != recordtest.Sequence(3) {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// withoutQueue deletes letters from memory, without a request to their queue.
type withoutQueue struct{ *Letters }

func (w withoutQueue) DeleteLetter(_ context.Context, _, id string) error {
	delete(w.letters, id)
	return nil
}

func bodies(q *Letters) (all []string) {
	for _, body := range q.letters {
		all = append(all, string(body))
	}
	return all
}
