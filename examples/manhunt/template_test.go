package manhunt

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

const ownTemplates = `{
	"call": {"text": "{contact.name}, incident {metadata.incident}\nneeds you"},
	"text": {"text": "{metadata.incident|lower} at step {step}"},
	"email": {"subject": "{metadata.incident} on {search.id}", "text": "Dear {contact.name},\n\n{metadata.incident}\n"},
	"webhook": {"body": {"who": "{contact.name}", "what": ["{metadata.incident}!", "{metadata.stage}"], "all": "{metadata}", "n": 1, "ok": true, "none": null, "key": "{dedupeKey}"}}
}`

// said returns the text for the first method of a search, and its attempt.
func said(t *testing.T, templates string, change func(method, search sluice.Item) (sluice.Item, sluice.Item)) (Message, Attempt) {
	t.Helper()
	fx := Fixtures()
	method, it := change(fx[email], fx[search])
	parsed, err := ParseTemplates([]byte(templates))
	if err != nil {
		t.Fatal(err)
	}
	db := newDB(fx[contact], method, it)
	var rec recorder
	r, err := NewRouter(Deps{Store: db, Send: ignore, Watch: ignore, Providers: rec.all(), Templates: parsed})
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
	if len(rec.calls) == 0 {
		return Message{}, attempts[0]
	}
	return rec.calls[0].Message, attempts[0]
}

// A search's metadata and the contact reach the provider, escaped for their place.
func TestTemplates(t *testing.T) {
	of := func(typ, metadata string, own ...item.Attribute) func(method, search sluice.Item) (sluice.Item, sluice.Item) {
		return func(method, search sluice.Item) (sluice.Item, sluice.Item) {
			data, err := item.FromJSON([]byte(metadata))
			if err != nil {
				t.Fatal(err)
			}
			method = method.With(item.String("type", typ))
			if len(own) > 0 {
				method = method.With(item.Map("template", item.Of(own...)))
			}
			return method, search.With(item.Map("metadata", data))
		}
	}
	plain := `{"incident":"I-1","stage":2}`
	nasty := `{"incident":"I\"1\\\r\nBcc: x@example.com\u2028\u0000\u0085é","stage":2}`
	for _, tt := range []struct {
		name   string
		change func(method, search sluice.Item) (sluice.Item, sluice.Item)
		want   Message
		err    string
	}{
		{"call", of("call", plain), Message{Text: "Zavier Curtis, incident I-1 needs you"}, ""},
		{"text", of("text", plain), Message{Text: "i-1 at step 0"}, ""},
		{"email", of("email", plain), Message{Subject: "I-1 on a271244", Text: "Dear Zavier Curtis,\n\nI-1\n"}, ""},
		{"webhook", of("webhook", plain), Message{Body: `{"who":"Zavier Curtis","what":["I-1!",2],"all":{"incident":"I-1","stage":2},"n":1,"ok":true,"none":null,"key":"a271244#0"}`}, ""},

		{"call, nasty", of("call", nasty), Message{Text: `Zavier Curtis, incident I"1\ Bcc: x@example.com é needs you`}, ""},
		{"email, nasty", of("email", nasty), Message{Subject: `I"1\ Bcc: x@example.com é on a271244`, Text: "Dear Zavier Curtis,\n\nI\"1\\\nBcc: x@example.comé\n"}, ""},
		{"webhook, nasty", of("webhook", nasty), Message{Body: `{"who":"Zavier Curtis","what":["I\"1\\\r\nBcc: x@example.com` + "\u2028" + `\u0000` + "\u0085" + `é!",2],"all":{"incident":"I\"1\\\r\nBcc: x@example.com\u2028\u0000` + "\u0085" + `é","stage":2},"n":1,"ok":true,"none":null,"key":"a271244#0"}`}, ""},

		{"own text", of("email", plain, item.String("text", "Z: {metadata.incident}")), Message{Subject: "I-1 on a271244", Text: "Z: I-1"}, ""},
		{"own body", of("webhook", plain, item.Map("body", item.Of(item.String("n", "{metadata.stage}")))), Message{Body: `{"n":2}`}, ""},

		{"missing", of("email", `{"stage":2}`), Message{}, "subject: {metadata.incident} is missing: set it, or leave it out of the template"},
		{"missing in a body", of("webhook", `{"incident":"I-1"}`), Message{}, "body: {metadata.stage} is missing: set it, or leave it out of the template"},
		{"a map as text", of("email", `{"incident":{"id":"I-1"}}`), Message{}, "subject: {metadata.incident} is of type M, want a text or a number"},
		{"long subject", of("email", `{"incident":"`+strings.Repeat("é", 130)+`"}`), Message{Subject: strings.Repeat("é", 123) + "…", Text: "Dear Zavier Curtis,\n\n" + strings.Repeat("é", 130) + "\n"}, ""},
		{"subject of 250 bytes", of("email", `{"incident":"`+strings.Repeat("x", 239)+`"}`), Message{Subject: strings.Repeat("x", 239) + " on a271244", Text: "Dear Zavier Curtis,\n\n" + strings.Repeat("x", 239) + "\n"}, ""},
		{"cut at a space", of("email", `{"incident":"`+strings.Repeat("x", 246)+`"}`), Message{Subject: strings.Repeat("x", 246) + "…", Text: "Dear Zavier Curtis,\n\n" + strings.Repeat("x", 246) + "\n"}, ""},
		{"long", of("call", `{"incident":"`+strings.Repeat("x", 70_000)+`"}`), Message{}, "text: the message has more than 65536 bytes"},
		{"long by repetition", of("call", `{"incident":"`+strings.Repeat("x", 1000)+`"}`, item.String("text", strings.Repeat("{metadata.incident}", 66))), Message{}, "text: the message has more than 65536 bytes"},

		{"own function", of("email", plain, item.String("text", `\{|{metadata.incident|replace:I:IIIIIIII|replace:I:IIIIIIII}`)), Message{}, "the method's template: a method's own template has no functions: write {name}, not {name|lower}"},
		{"own function in a body", of("webhook", plain, item.Map("body", item.Of(item.Map("a", item.Of(item.String("n", "{metadata.stage|lower}")))))), Message{}, "the method's template: a method's own template has no functions: write {name}, not {name|lower}"},
		{"own template is long", of("email", plain, item.String("text", strings.Repeat("x", 9000))), Message{}, "the method's template: it has 9017 bytes, want 8192 at most"},
		{"own template is none", of("email", plain, item.String("text", "{")), Message{}, "the method's template: text: template \"{\", byte 0: "},
		{"own template of what there is not", of("email", plain, item.String("text", "{env.HOME}")), Message{}, "the method's template: text: {env.HOME} begins with none of metadata, contact, search, method, step, dedupeKey"},
		{"own member", of("email", plain, item.String("html", "x")), Message{}, `the method's template: there is no member "html": want subject, text or body`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, a := said(t, ownTemplates, tt.change)
			outcome := "contacted"
			if tt.err != "" {
				outcome = "failed"
			}
			if m != tt.want || a.Outcome != outcome || !strings.HasPrefix(a.Error, tt.err) || tt.err == "" && a.Error != "" {
				t.Errorf("%q, %s %q\nwant %q, %s %q", m, a.Outcome, a.Error, tt.want, outcome, tt.err)
			}
		})
	}

	t.Run("template is a text", func(t *testing.T) {
		_, a := said(t, "{}", func(method, search sluice.Item) (sluice.Item, sluice.Item) {
			return method.With(item.String("template", "hello")), search
		})
		if a.Error != "the method's template: want an object with subject, text or body" {
			t.Errorf("%+v", a)
		}
	})
	t.Run("no metadata", func(t *testing.T) { // the default templates need none
		for _, typ := range []string{"call", "text", "email", "webhook"} {
			m, a := said(t, "{}", func(method, search sluice.Item) (sluice.Item, sluice.Item) {
				return method.With(item.String("type", typ)), search.Without("metadata")
			})
			if a.Outcome != "contacted" || m == (Message{}) {
				t.Errorf("%s: %+v, %+v", typ, m, a)
			}
		}
	})
}

// A method that cannot be told anything fails, and the next one has its turn.
func TestLadderGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, "19:32:15")
		fx := Fixtures()
		w.put(t, fx[contact], fx[email].With(item.Map("template", item.Of(item.String("text", "{metadata.floor}")))), fx[call], fx[search])
		w.run(t, "21:00:00")
		same(t, "calls", w.calls, "19:52:15 a271244#1")
		_, attempts, _, err := w.SearchWithAttempts(t.Context(), "a271244")
		if err != nil || len(attempts) != 2 {
			t.Fatalf("%v, %+v", err, attempts)
		}
		for _, a := range attempts {
			if want := map[int64]string{0: "failed text: {metadata.floor} is missing: set it, or leave it out of the template", 1: "contacted "}[a.Step]; a.Outcome+" "+a.Error != want {
				t.Errorf("%+v, want %q", a, want)
			}
		}
	})
}

func TestParseTemplates(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                   "templates: it is no JSON object but an array",
		`{"email":"hello"}`:                    "templates: email: want an object with subject, text or body",
		`{"email":{"text":"x"}}`:               "templates: email: subject is missing",
		`{"webhook":{"text":"x"}}`:             "templates: webhook: body is missing",
		`{"call":{"text":1}}`:                  "templates: call: text: want a text",
		`{"webhook":{"body":"x"}}`:             "templates: webhook: body: want an object",
		`{"call":{"text":"{metdata.x}"}}`:      "templates: call: text: {metdata.x} begins with none of metadata, contact, search, method, step, dedupeKey",
		`{"call":{"text":"{metadata.x|up}"}}`:  `templates: call: text: template "{metadata.x|up}", byte 12: there is no function "up": want lower, trim:prefix or replace:old:new`,
		`{"webhook":{"body":{"a":["{"]}}}`:     `templates: webhook: body: template "{", byte 0: no attribute is named`,
		`{"pigeon":{"text":"{contact.name}"}}`: "<nil>",
	} {
		if _, err := ParseTemplates([]byte(text)); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := Register(nil, Deps{Store: newDB(), Send: ignore, Watch: ignore, Providers: map[string]Provider{"pigeon": nil}}); err == nil || !strings.Contains(err.Error(), "methods of type pigeon, and no template") {
		t.Error(err)
	}
}

// An attempt keeps what it used of its method, also when a process dies in the middle
// of it, and the method is edited before another takes it over.
func TestAttemptKeepsItsDestination(t *testing.T) {
	fx := Fixtures()
	db := newDB(fx[contact], fx[email], fx[search])
	var rec recorder
	r, err := NewRouter(Deps{Store: db, Send: ignore, Watch: ignore, Providers: rec.all()})
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable(db, "manhunt")
	begun := streamtest.Item(`{"entityType":{"S":"searchAttempt"},"PK":{"S":"a271244"},"SK":{"S":"` + AttemptID("a271244", 0, 0) + `"},"contactId":{"S":"89fa8f8"},"domainId":{"S":"db3280c"},"step":{"N":"0"},` +
		`"method":{"M":{"methodId":{"S":"538235b"},"type":{"S":"email"},"destination":{"S":"z@example.com"},"name":{"S":"home"},"order":{"N":"1"}}},` +
		`"leaseOwner":{"S":"dead"},"leaseUntil":{"S":"2019-12-30T19:34:14Z"}}`)
	if err := table.Put(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	if err := table.Put(t.Context(), fx[email].With(item.String("destination", "new@example.com"))); err != nil {
		t.Fatal(err)
	}
	m := received(firstBody)
	if err := r.Dispatch(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	_, attempts, _, err := table.SearchWithAttempts(t.Context(), "a271244")
	if err != nil || len(attempts) != 1 || len(rec.calls) != 1 {
		t.Fatalf("%v, %+v, %+v", err, attempts, rec.calls)
	}
	if m := attempts[0].Method; rec.calls[0].Destination != "z@example.com" || m.Destination != "z@example.com" || m.Type != "email" || m.Name != "home" || m.ID != "538235b" {
		t.Errorf("called %q, attempt %+v", rec.calls[0].Destination, m)
	}
}
