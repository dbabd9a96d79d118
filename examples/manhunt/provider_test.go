package manhunt

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/handlers/escalation/webhook"
	"github.com/sluicehq/sluice/run"
)

// recorder is a provider that remembers.
type recorder struct {
	mu    sync.Mutex
	calls []Call
	fail  func(Call) error
}

func (r *recorder) provider(_ context.Context, c Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	if r.fail != nil {
		return r.fail(c)
	}
	return nil
}

// all is the recorder for each type of method.
func (r *recorder) all() map[string]Provider {
	return map[string]Provider{"call": r.provider, "text": r.provider, "email": r.provider, "webhook": r.provider}
}

// comesBack is a store in which the contact is put as soon as somebody has seen
// that it is gone.
type comesBack struct {
	Store
	t *testing.T
}

func (s *comesBack) Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error) {
	if err := NewTable(s.Store, "manhunt").Put(ctx, Fixtures()[contact]); err != nil {
		s.t.Error(err)
	}
	return s.Store.Query(ctx, q)
}

// received is the record of a message.
func received(body string) sluice.Record {
	m := sluice.Message{ID: "m1", Body: body}
	return *m.Record("arn:aws:sqs:eu-west-1:123456789012:attempts")
}

// The consumer calls the provider of the method's type with the data of the call.
func TestContact(t *testing.T) {
	fx := Fixtures()
	hook := edit(fx[email], `"S":"email"`, `"S":"webhook"`, "z@example.com", "URL")
	for _, tt := range []struct {
		name    string
		method  sluice.Item
		code    int
		outcome string
	}{
		{"email", fx[email], 0, "contacted"},
		{"webhook", hook, 204, "contacted"},
		{"webhook refuses", hook, 410, "failed"},
		{"webhook is no URL", edit(hook, "URL", "nowhere"), 0, "failed"},
		{"unknown type", edit(fx[email], `"S":"email"`, `"S":"pigeon"`), 0, "failed"},
		{"gone", sluice.Item{}, 0, "skipped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = r.Header.Get("Idempotency-Key") + " " + string(body)
				w.WriteHeader(tt.code)
			}))
			defer srv.Close()
			client, err := webhook.New(webhook.Options{AllowHTTP: true, AllowPrivate: true})
			if err != nil {
				t.Fatal(err)
			}
			db := newDB(fx[contact], fx[search])
			if tt.method.Exists() {
				method := tt.method
				if strings.Contains(string(method.Raw()), "URL") {
					method = edit(method, "URL", srv.URL)
				}
				NewTable(db, "manhunt").Put(t.Context(), method)
			}
			var rec recorder
			providers := rec.all()
			providers["webhook"] = Webhook(client)
			var told string
			r, err := NewRouter(Deps{Store: db, Send: ignore, Watch: ignore, Providers: providers, Called: func(try escalation.Try, outcome string, _ error) { told = try.DedupeKey + " " + outcome }})
			if err != nil {
				t.Fatal(err)
			}
			m := received(firstBody)
			if err := r.Dispatch(t.Context(), &m); err != nil {
				t.Fatal(err)
			}
			_, attempts, _, err := NewTable(db, "manhunt").SearchWithAttempts(t.Context(), "a271244")
			if err != nil || len(attempts) != 1 {
				t.Fatalf("%v, %+v", err, attempts)
			}
			a := attempts[0]
			if a.ID != AttemptID("a271244", 0, 0) || a.Outcome != tt.outcome || a.Attempted == "" || a.Method.ID != "538235b" || a.Method.Order != 1 || a.Step != 0 ||
				a.ContactID != "89fa8f8" || a.DomainID != "db3280c" || a.Method.Type != attribute(tt.method, "type") || (a.Method.Destination != "") != tt.method.Exists() || (a.Error == "") != (tt.outcome == "contacted") {
				t.Errorf("attempt %+v", a)
			}
			if tt.outcome != "skipped" && told != "a271244#0 "+tt.outcome {
				t.Errorf("told %q", told)
			}
			if want := `a271244#0 {"kind":"manhunt.contact","v":1,"searchId":"a271244","domainId":"db3280c","contactId":"89fa8f8","methodId":"538235b","step":0,"metadata":{"incident":"I-1"},"dedupeKey":"a271244#0"}`; tt.code != 0 && got != want {
				t.Errorf("webhook got %s", got)
			}
			if tt.name == "email" {
				if want := (Call{SearchID: "a271244", DomainID: "db3280c", ContactID: "89fa8f8", MethodID: "538235b", Type: "email", Destination: "z@example.com", DedupeKey: "a271244#0", Message: Message{
					Subject: "Search a271244 needs your answer", Text: "Search a271244, which began at 2019-12-30T19:32:14Z, needs your answer.\n",
				}}); len(rec.calls) != 1 || rec.calls[0] != want {
					t.Errorf("calls %+v", rec.calls)
				}
			}
		})
	}
}

// The fake carrier logs no destination, no id and no text.
func TestPretend(t *testing.T) {
	var log bytes.Buffer
	var outbox bytes.Buffer
	err := Pretend(slog.New(slog.NewTextHandler(&log, nil)), &outbox)(t.Context(), Call{
		SearchID: "a271244", Type: "call", ContactID: "89fa8f8", Destination: "+15550100", DedupeKey: "a271244#1", Message: Message{Subject: "I-1", Text: "I-1 <burns>,\n\tcome"},
	})
	if got := log.String(); err != nil || !strings.Contains(got, "type=call") || regexp.MustCompile("5550100|a271244|89fa8f8|I-1").MatchString(got) {
		t.Errorf("%v, %s", err, got)
	}
	if want := `{"type":"call","destination":"+15550100","subject":"I-1","text":"I-1 <burns>,\n\tcome","dedupeKey":"a271244#1"}` + "\n"; outbox.String() != want {
		t.Errorf("outbox %s", outbox.String())
	}
}

func TestWebhookSetting(t *testing.T) {
	for value, want := range map[string]string{"": "<nil>", "public": "<nil>", "any": "<nil>", "yes": `MANHUNT_WEBHOOKS is "yes"; want public (https to public addresses) or any`} {
		_, err := providers(run.Setup{Env: func(name string) string { return map[string]string{"MANHUNT_WEBHOOKS": value}[name] }, Logger: slog.Default()})
		if fmt.Sprint(err) != want {
			t.Errorf("%q: %v", value, err)
		}
	}
}
