package letterqueue

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
)

// takesMessages is a queue that notes sent and deleted messages.
type takesMessages struct {
	t          *testing.T
	seen       []string
	last       string // that was sent
	attributes map[string]string
}

func (q *takesMessages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct {
		MessageBody, ReceiptHandle             string
		MessageGroupId, MessageDeduplicationId string
		AttributeNames                         []string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		q.t.Error(err)
	}
	switch op {
	case "SendMessage":
		e, err := deadletter.Parse([]byte(in.MessageBody))
		q.last = in.MessageBody
		q.seen = append(q.seen, fmt.Sprintf("send %d, %d redrives", recordtest.Nth(e.Sequence), e.Redrives))
		if err != nil || len(in.MessageBody) > mostMessage {
			q.t.Errorf("%d bytes: %v", len(in.MessageBody), err)
		}
		if in.MessageGroupId != "" && in.MessageDeduplicationId != "" {
			q.seen = append(q.seen, "to the group "+in.MessageGroupId)
		}
		for _, id := range []string{in.MessageGroupId, in.MessageDeduplicationId} {
			if len(id) > 128 || strings.Contains(id, " ") {
				q.t.Errorf("id %q: want up to 128 letters, digits and punctuation characters", id)
			}
		}
		fmt.Fprintf(w, `{"MessageId":"m","MD5OfMessageBody":"%x"}`, md5.Sum([]byte(in.MessageBody)))
	case "DeleteMessage":
		q.seen = append(q.seen, "delete "+in.ReceiptHandle)
		fmt.Fprint(w, `{}`)
	case "GetQueueAttributes":
		asked := make(map[string]string)
		for _, name := range in.AttributeNames {
			asked[name] = q.attributes[name]
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"Attributes": asked})
	default:
		q.t.Errorf("%s", op)
	}
}

// inHand are the letters of n changes of one item, received from a queue.
func inHand(t *testing.T, route string, n int) (*takesMessages, *Letters, []string) {
	service := &takesMessages{t: t}
	svc := httptest.NewServer(service)
	t.Cleanup(svc.Close)
	q := &Letters{
		api: sqs.New(sqs.Options{Region: "eu-west-1", BaseEndpoint: &svc.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}),
		url: aws.String(svc.URL + "/1/letters"), app: "app", letters: make(map[string][]byte), handles: make(map[string][]string), keys: letterKeys(t),
	}
	var ids []string
	sender := deadletter.Sender(func(_ context.Context, e deadletter.Entry, data []byte) error {
		q.add(types.Message{Body: aws.String(string(q.keys.Sign(data))), ReceiptHandle: aws.String(fmt.Sprint(recordtest.Nth(e.Sequence)))})
		ids = append(ids, e.ID)
		return nil
	})
	for i := range n {
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(i + 1), Shard: "shard"})
		if err := sender.Park(t.Context(), &rec, sluice.Failure{Route: route, Attempts: 1, First: errors.New("down"), Last: errors.New("down")}); err != nil {
			t.Fatal(err)
		}
	}
	return service, q, ids
}

// A letter that failed again and was sent back is not in hand any more, but it is
// there: later changes of its item wait for it, and it is not said to be deleted.
func TestSentBackToTheQueue(t *testing.T) {
	service, q, ids := inHand(t, "r", 2)
	box := deadletter.NewBox(q, "app")
	var ran []int
	m := router.New()
	m.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
		ran = append(ran, recordtest.Nth(rec.Sequence))
		if len(ran) == 1 {
			return errors.New("still down")
		}
		return nil
	}, router.Name("r"), router.Redrive())
	how := deadletter.How{Earlier: true}
	if err := box.Redrive(t.Context(), m, ids[0], how); err == nil || !strings.Contains(err.Error(), "still down") {
		t.Error(err)
	}
	if err := box.Redrive(t.Context(), m, ids[1], how); err == nil || !strings.Contains(err.Error(), "was sent back to the queue a moment ago") {
		t.Error(err)
	}
	if want := []int{1, 1}; !slices.Equal(ran, want) {
		t.Errorf("it ran %d, want %d: the later one waits", ran, want)
	}
	if want := []string{"send 1, 1 redrives", "delete 1"}; !slices.Equal(service.seen, want) {
		t.Errorf("the queue saw %q, want %q", service.seen, want)
	}
	if err := box.Delete(t.Context(), ids[0]); err == nil || !strings.Contains(err.Error(), "run the command again") {
		t.Errorf("deleted: %v", err)
	}
	if err := box.Delete(t.Context(), ids[1]); err != nil || service.seen[len(service.seen)-1] != "delete 2" {
		t.Errorf("%v, %q", err, service.seen)
	}
}

// Hidden letters may be earlier changes of the received ones: letters of other
// receivers, delayed ones, or letters behind others of their group.
func TestNotAllInHand(t *testing.T) {
	for _, tt := range []struct {
		queue, hidden, delayed, visible, want string
	}{
		{"letters", "2", "0", "0", ""},
		{"letters", "2", "0", "9", ""}, // which a queue may say a while after they were received
		{"letters", "1", "", "", ""},
		{"letters", "3", "0", "0", "1 messages of the queue are in other hands"},
		{"letters", "2", "4", "0", "4 messages of the queue are delayed"},
		{"letters.fifo", "2", "0", "0", ""},
		{"letters.fifo", "2", "0", "9", "9 messages of the queue are behind those that are here"},
		{"letters.fifo", "3", "0", "9", "1 messages of the queue are in other hands"},
	} {
		service, q, _ := inHand(t, "r", 2)
		*q.url += strings.TrimPrefix(tt.queue, "letters")
		service.attributes = map[string]string{
			"ApproximateNumberOfMessagesNotVisible": tt.hidden, "ApproximateNumberOfMessagesDelayed": tt.delayed, "ApproximateNumberOfMessages": tt.visible,
		}
		if got := q.inOtherHands(t.Context(), 2); tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// A FIFO queue needs a group for a returned message, and gives ten messages of a group
// at a time. Every queue limits the size of messages.
func TestSentBackAsTheQueueWantsIt(t *testing.T) {
	for suffix, want := range map[string][]string{
		"":      {"send 1, 1 redrives", "delete 1"},
		".fifo": {"send 1, 1 redrives", "to the group ID", "delete 1"},
	} {
		service, q, ids := inHand(t, "r", 1)
		*q.url += suffix
		e, err := deadletter.Parse(q.letters[ids[0]])
		if err != nil {
			t.Fatal(err)
		}
		e.Redrives++
		e.Last.Details = []map[string]string{{"reason": strings.Repeat("x", mostMessage)}}
		data, err := e.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		err = q.PutLetter(t.Context(), "app", ids[0], data)
		if got := strings.ReplaceAll(strings.Join(service.seen, "; "), ids[0], "ID"); err != nil || got != strings.Join(want, "; ") {
			t.Errorf("%v, the queue saw %q, want %q", err, got, want)
		}
	}
}

// If several messages hold one letter, the newest failure counts, in any order of
// arrival. All of them are deleted with the letter. A letter of a newer program counts,
// too.
func TestLetterInSeveralMessages(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	message := func(redrives int, last time.Time) string {
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(1)})
		e := deadletter.Entry{ID: "one", Route: "r", EventID: rec.EventID, StreamARN: rec.StreamARN, Sequence: rec.Sequence, Raw: rec.Raw(), Redrives: redrives, Last: deadletter.Fault{At: last}}
		data, err := e.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(letterKeys(t).Sign(data))
	}
	oldest, older, newest := message(1, at.Add(time.Hour)), message(2, at), message(2, at.Add(time.Minute))
	for _, bodies := range [][]string{{oldest, older, newest}, {newest, older, oldest}, {older, newest, oldest}} {
		service, q, _ := inHand(t, "r", 0)
		for i, body := range append(bodies, `{"version":9,"id":"newer"}`, "no letter") {
			q.add(types.Message{Body: aws.String(body), ReceiptHandle: aws.String(fmt.Sprint(i))})
		}
		if string(q.letters["one"]) != newest || q.letters["newer"] == nil || len(q.letters) != 2 || len(q.handles[""]) != 1 {
			t.Errorf("%q, others %q", q.letters, q.handles[""])
		}
		if err := q.DeleteLetter(t.Context(), "app", "one"); err != nil || !slices.Equal(service.seen, []string{"delete 0", "delete 1", "delete 2"}) {
			t.Errorf("%v, the queue saw %q", err, service.seen)
		}
	}
}

// A sender cannot replace another letter, in any order of arrival: not a signed letter,
// and not an unsigned letter that an operator has looked at.
func TestForgedLetterInTheQueue(t *testing.T) {
	keys := letterKeys(t)
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(1)})
	e := deadletter.Entry{ID: "one", Route: "r", EventID: rec.EventID, StreamARN: rec.StreamARN, Sequence: rec.Sequence, Raw: rec.Raw()}
	letter := func(e deadletter.Entry) string {
		data, err := e.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	unsigned, good := letter(e), string(keys.Sign([]byte(letter(e))))
	content, err := e.ContentID()
	if err != nil {
		t.Fatal(err)
	}
	e.Redrives, e.Last.Error = 9, "again"
	again := letter(e)
	e.Route = "other"
	forged := letter(e)
	for _, tt := range []struct {
		name   string
		bodies []string
		want   int // letters
	}{
		{"beside a signed one", []string{good, forged}, 2},
		{"of a newer program", []string{good, `{"version":9,"id":"one"}`}, 1},
		{"beside one that is not signed", []string{unsigned, forged}, 2},
		{"of a newer program, with the id of one that is not signed", []string{unsigned, fmt.Sprintf(`{"version":9,"id":%q}`, content)}, 1},
		{"with a time that no letter can have", []string{good, strings.Replace(forged, `"lastError":{`, `"lastError":{"at":"9999-12-31T23:59:59-01:00",`, 1)}, 1},
		{"the same, which failed again", []string{unsigned, again}, 1},
	} {
		for range 2 {
			_, q, _ := inHand(t, "r", 0)
			for i, body := range tt.bodies {
				q.add(types.Message{Body: aws.String(body), ReceiptHandle: aws.String(fmt.Sprint(i))})
			}
			if len(q.letters) != tt.want {
				t.Errorf("%s: %q", tt.name, q.letters)
			}
			if slices.Contains(tt.bodies, good) && string(q.letters["one"]) != good {
				t.Errorf("%s: the signed letter is %s", tt.name, q.letters["one"])
			}
			for id, data := range q.letters {
				if e, err := deadletter.Parse(data); err != nil || e.ID != id || id != "one" && keys.Verify(data) == nil {
					t.Errorf("%s: %s has the id %s, %v", tt.name, data, id, err)
				}
			}
			slices.Reverse(tt.bodies)
		}
	}
}

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

// A letter for all routes becomes one for each that fails. When nobody has signed it,
// none of those takes the place of the signed letter of the same record and route.
func TestForgedLetterOfAllRoutes(t *testing.T) {
	service, q, ids := inHand(t, "r", 1)
	e, err := deadletter.Parse(q.letters[ids[0]])
	if err != nil {
		t.Fatal(err)
	}
	e.ID, e.Route = "forged", ""
	data, err := e.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	q.add(types.Message{Body: aws.String(string(data)), ReceiptHandle: aws.String("forged")})
	content, err := e.ContentID()
	if err != nil {
		t.Fatal(err)
	}
	m := router.New()
	m.Handle("*#*", func(context.Context, *sluice.Record) error { return errors.New("still down") }, router.Name("r"), router.Redrive())
	box := deadletter.NewBox(q, "app")
	if err := box.Redrive(t.Context(), m, content, deadletter.How{Unsigned: []string{content}, Force: true}); err == nil || !strings.Contains(err.Error(), "still down") {
		t.Error(err)
	}
	if want := []string{"send 1, 1 redrives", "delete forged"}; !slices.Equal(service.seen, want) {
		t.Errorf("the queue saw %q, want %q", service.seen, want)
	}
	if q.keys.Verify(q.letters[ids[0]]) != nil || len(q.handles[ids[0]]) != 1 {
		t.Errorf("the signed letter is %s", q.letters[ids[0]])
	}
}

// A signed letter is signed again after it is shortened. An unsigned letter is not.
func TestSentBackSigned(t *testing.T) {
	for _, signed := range []bool{true, false} {
		service, q, ids := inHand(t, "r", 1)
		e, err := deadletter.Parse(q.letters[ids[0]])
		if err != nil {
			t.Fatal(err)
		}
		e.Last.Details = []map[string]string{{"reason": strings.Repeat("x", mostMessage)}}
		data, err := e.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if signed {
			data = q.keys.Sign(data)
		}
		if err := q.PutLetter(t.Context(), "app", ids[0], data); err != nil {
			t.Fatal(err)
		}
		if err := q.keys.Verify([]byte(service.last)); (err == nil) != signed {
			t.Errorf("signed %v: %v", signed, err)
		}
	}
}
