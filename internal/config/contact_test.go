package config

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/handlers/escalation/webhook"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/tabletest"
)

// contacted is the file of escalations with a route that calls url.
func contacted(url string) *Config {
	c := calls()
	at := &c.Routes[1].Escalate.Ladder.Attempt
	at.Set = map[string]string{"entityType": "attempt"}
	c.Routes = append(c.Routes, Route{
		Name: "contact", On: Strings{"call.attempt#MESSAGE", "call.expire#MESSAGE"},
		Escalate: &Escalate{Do: "contact", Contact: &Contact{URL: url, AllowHTTP: true, AllowPrivate: true}},
	})
	return c
}

// phones are the called contacts.
type phones struct {
	*world
	t     *testing.T
	app   *App
	posts []string
	code  int
	now   time.Time
	id    int
}

func newPhones(t *testing.T, edit func(*Config), items ...string) *phones {
	p := &phones{world: newWorld(), t: t, code: http.StatusNoContent, now: time.Date(2024, 1, 1, 0, 0, 5, 0, time.UTC)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.posts = append(p.posts, r.URL.Path+" "+r.Header.Get("Idempotency-Key")+" "+string(body))
		w.WriteHeader(p.code)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	p.tables = tabletest.NewWorld(p.now)
	p.tables.Create("calls", "PK", "SK")
	put(t, p.tables, "calls", items...)
	c := contacted(srv.URL + "/{step.SK}")
	if edit != nil {
		edit(c)
	}
	s := p.setup()
	s.Fakes.Now = func() time.Time { return p.now }
	var err error
	if p.app, err = build(t, c, s); err != nil {
		t.Fatal(err)
	}
	return p
}

// handle runs the records of the tables and the messages of the queue of steps. It
// returns the outcomes of messages.
func (p *phones) handle() (outcomes []string) {
	p.t.Helper()
	for more := true; more; {
		more = false
		for _, rec := range p.tables.Records() {
			more = true
			if err := p.app.Router.Dispatch(p.t.Context(), &rec); err != nil && !sluice.IsSkip(err) {
				p.t.Fatal(err)
			}
		}
		tries := p.to("tries")
		p.sent = nil
		for _, m := range tries {
			more = true
			p.id++
			m.ID = fmt.Sprint(p.id)
			p.now = p.now.Add(m.Delay)
			err := p.app.Router.Dispatch(p.t.Context(), m.Record("arn:aws:sqs:us-east-1:123456789012:tries"))
			outcomes = append(outcomes, fmt.Sprint(err))
			if err != nil && !sluice.IsSkip(err) { // the queue sends the message again
				p.sent = append(p.sent, m)
				return outcomes
			}
		}
	}
	return outcomes
}

// A file without Go calls one step after another. It consumes its own queue, posts,
// writes the outcome, and continues from the outcome's record.
func TestContactByWebhook(t *testing.T) {
	text := strings.NewReplacer(`"phone"`, `"text"`, `"order":1,"wait":0`, `"order":2,"wait":30`).Replace(aStep)
	p := newPhones(t, nil, aStep, text, aCall)
	if strings.Join(p.app.Queues, " ") != "watches tries" {
		t.Errorf("queues %q", p.app.Queues)
	}
	p.handle()
	want := []string{
		`/phone call/c-1#0 {"kind":"call.contact","escalation":"c-1","ladder":"ada","step":"phone","number":0,"dedupeKey":"call/c-1#0"}`,
		`/text call/c-1#1 {"kind":"call.contact","escalation":"c-1","ladder":"ada","step":"text","number":1,"dedupeKey":"call/c-1#1"}`,
	}
	if strings.Join(p.posts, "\n") != strings.Join(want, "\n") {
		t.Errorf("posts\n%s\nwant\n%s", strings.Join(p.posts, "\n"), strings.Join(want, "\n"))
	}
	got := all(p.tables, "calls")
	for _, part := range []string{
		`"SK":"a0@0"`, `"entityType":"attempt"`, `"number":0`, `"order":1`, `"step":"phone"`, `"at":"2024-01-01T00:00:05Z"`, `"outcome":"contacted"`,
		`"SK":"a1@0"`, `"at":"2024-01-01T00:00:35Z"`, `"status":"failed"`, `"why":"no_response"`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	if strings.Contains(got, "lease") {
		t.Errorf("a lease is left: %s", got)
	}
}

// The answer of the URL decides the outcome. Templates read escalation, step and
// contact.
func TestContactAnswers(t *testing.T) {
	several := strings.Replace(aStep, `"wait":0`, `"wait":0,"people":["ann","b o"]`, 1)
	for _, tt := range []struct {
		name  string
		code  int
		edit  func(*Config)
		step  string
		posts string
		table string // the table's items
		last  string // outcome of the last message
	}{
		{"refused", 410, nil, aStep, "/phone call/c-1#0", `: answered 410","number":0,"order":1,"outcome":"failed"`, "<nil>"},
		{"busy", 503, nil, aStep, "/phone call/c-1#0", `"leaseUntil":"2024-01-01T00:00:05Z"`, "step " + keyhash.Text("c-1#0") + ": contacting: webhook to"},
		{"a body", 200, func(c *Config) {
			c.Routes[2].Escalate.Contact.Body = `{"to":"{contact}","why":"{escalation.contact}","n":{number},"wait":{step.wait},"key":"{dedupeKey}"}`
		}, aStep, `{"to":"","why":"ada","n":0,"wait":0,"key":"call/c-1#0"}`, `"outcome":"contacted"`, "<nil>"},
		{"several contacts", 200, func(c *Config) {
			c.Routes[1].Escalate.Ladder.Step.Contacts = "people"
			c.Routes[2].Escalate.Contact.URL = strings.Replace(c.Routes[2].Escalate.Contact.URL, "{step.SK}", "{step.SK}/{contact}", 1)
		}, several, `"contact":"b o","number":0,"dedupeKey":"call/c-1#0/b+o"}`, `"contacts":{"ann":"contacted","b o":"contacted"}`, "<nil>"},
		{"a template that lacks something", 200, func(c *Config) { c.Routes[2].Escalate.Contact.URL = "{step.url}" }, aStep, "", `"error":"the url: `, "<nil>"},
		{"a URL that is not allowed", 200, func(c *Config) { c.Routes[2].Escalate.Contact.URL = "ftp://{step.SK}/" }, aStep, "", `"error":"webhook: the destination on phone is ftp, want https"`, "<nil>"},
		{"a body that lacks something", 200, func(c *Config) { c.Routes[2].Escalate.Contact.Body = "{step.text}" }, aStep, "", `"error":"the body: `, "<nil>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPhones(t, tt.edit, tt.step, aCall)
			p.code = tt.code
			outcomes := p.handle()
			posts := strings.Join(p.posts, "\n")
			if !strings.Contains(posts, tt.posts) || tt.posts == "" && posts != "" || !strings.Contains(all(p.tables, "calls"), tt.table) || !strings.HasPrefix(outcomes[len(outcomes)-1], tt.last) {
				t.Errorf("posts %s\ntable %s\noutcomes %q", posts, all(p.tables, "calls"), outcomes)
			}
		})
	}
}

// Orders and devices call one provider, and share one queue of alarms. Order 17 and
// device 17 must have different keys.
func TestKeysOfTwoKinds(t *testing.T) {
	seen := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen[r.Header.Get("Idempotency-Key")] = true }))
	t.Cleanup(srv.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	kinds := []string{"order", "device", "a/b", "a"}
	w := newWorld()
	c := calls()
	c.Sinks["alarms"].SQS.Queue = "alarms.fifo"
	w.tables = tabletest.NewWorld(time.Now())
	b, err := newBuilder(c, w.setup())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		call := newCaller(kind, &Contact{URL: srv.URL}, func(_ string, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		if call.hook, err = webhook.New(webhook.Options{AllowHTTP: true, AllowPrivate: true}); err != nil {
			t.Fatal(err)
		}
		id := "17"
		if kind == "a" {
			id = "b/17"
		}
		if err := call.contact(t.Context(), escalation.Try{Escalation: escalation.Escalation{ID: id}, DedupeKey: id + "#0"}); err != nil {
			t.Fatal(err)
		}
		raise := b.raise(kind, b.sinks.queue("alarms"))
		if err := raise(t.Context(), escalation.Alarm{Escalation: id, DedupeKey: id + "#alarm-0"}); err != nil {
			t.Fatal(err)
		}
	}
	alarms := map[string]bool{}
	for _, m := range w.to("alarms.fifo") {
		alarms[m.DeduplicationID] = true
		if !strings.Contains(m.Body, `"dedupeKey":"`+m.DeduplicationID+`"`) {
			t.Errorf("alarm %+v", m)
		}
	}
	if len(seen) != len(kinds) || len(alarms) != len(kinds) {
		t.Errorf("keys %v, of alarms %v", seen, alarms)
	}
}

func TestContactExplains(t *testing.T) {
	p := newPhones(t, nil, aStep, aCall)
	for kind, want := range map[string]string{
		"attempt": "when it is due, and the escalation still active, claim the attempt, call for it, and write what came of it [dynamodb calls c-1#0]",
		"expire":  "when it is due, end the escalation, if it is still active [dynamodb calls c-1#0]",
	} {
		m := sluice.Message{ID: "m", Body: `{"kind":"call.` + kind + `","dedupeKey":"c-1#0"}`}
		if got := explained(t, p.app, "contact", m.Record("arn:aws:sqs:us-east-1:123456789012:tries")); got != want {
			t.Error(got)
		}
	}
	m := sluice.Message{ID: "m", Body: `{"kind":"call.other"}`}
	c := contacted("https://example.com")
	c.Routes[2].On = Strings{"*#MESSAGE"}
	app := newWorld().build(t, c)
	if err := app.Router.Dispatch(t.Context(), m.Record("arn:aws:sqs:us-east-1:123456789012:tries")); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "want the kind call.attempt or call.expire") {
		t.Error(err)
	}
}

func TestContactSaysWhatIsWrong(t *testing.T) {
	for want, edit := range map[string]func(contact, start *Escalate, c *Config){
		"routes[2].escalate.contact: it is missing":                                                func(o, _ *Escalate, _ *Config) { o.Contact = nil },
		"routes[1].escalate.contact: it is for a route of contact":                                 func(o, s *Escalate, _ *Config) { s.Contact = o.Contact },
		"routes[2].escalate.contact.url: template":                                                 func(o, _ *Escalate, _ *Config) { o.Contact.URL = "{step" },
		"routes[2].escalate.contact.body: body":                                                    func(o, _ *Escalate, _ *Config) { o.Contact.Body = `{"a":` },
		"routes[2].escalate.contact: escalation: Lease is 2s, want more than":                      func(o, _ *Escalate, _ *Config) { o.Contact.Lease = Duration(2 * time.Second) },
		"Watch.After is 12m0s, want more than GiveUpAfter and Lease together":                      func(_, s *Escalate, _ *Config) { s.WatchAfter = Duration(12 * time.Minute) },
		"attempt.at is \"x.at\", within a map":                                                     func(_, s *Escalate, _ *Config) { s.Ladder.Attempt.At = "x.at" },
		"attempt.set has no entityType: want the entity type of attempts":                          func(_, s *Escalate, _ *Config) { s.Ladder.Attempt.Set = nil },
		"attempt.set has entityType: try, and routes of next take attempt#MODIFY: want try#MODIFY": func(_, s *Escalate, _ *Config) { s.Ladder.Attempt.Set["entityType"] = "try" },
		"routes of next take attempt#INSERT: want attempt#MODIFY":                                  func(_, _ *Escalate, c *Config) { c.Routes[0].On = Strings{"attempt#INSERT"} },
		"attempt.set has SK, an attribute of attempt.key":                                          func(_, s *Escalate, _ *Config) { s.Ladder.Attempt.Set["SK"] = "x" },
		"attempt.key has \"x-{id}\" for PK, the attribute of attempt.escalation":                   func(_, s *Escalate, _ *Config) { s.Ladder.Attempt.Key["PK"] = "x-{id}" },
		"attempt.number is \"SK\", an attribute of attempt.key":                                    func(_, s *Escalate, _ *Config) { s.Ladder.Attempt.Number = "SK" },
		"the queue tries is consumed by the application itself, and no route takes call.expire#MESSAGE": func(_, _ *Escalate, c *Config) {
			c.Routes[2].On = Strings{"call.attempt#MESSAGE"}
		},
		"routes[1].escalate.alarm: the queue tries is consumed by the application itself, and no route takes call.alarm#MESSAGE": func(_, s *Escalate, _ *Config) {
			s.Alarm = "tries"
		},
	} {
		c := contacted("https://example.com")
		edit(c.Routes[2].Escalate, c.Routes[1].Escalate, c)
		fails(t, c, want)
	}
}
