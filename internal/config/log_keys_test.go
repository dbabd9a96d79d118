package config

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/streamtest"
)

// brokenServices refuse every call. The cluster quotes its request.
func brokenServices(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Header.Get("X-Amz-Target") != "":
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"AccessDeniedException","message":"not authorized"}`)
	case r.URL.Path == "/_bulk" && strings.Contains(string(body), "refused"):
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"error":{"type":"security_exception","reason":"no permissions for [orders-s3cret] and document 'refused-s3cret'"}}`)
	case r.URL.Path == "/_bulk":
		io.WriteString(w, `{"errors":true,"items":[{"index":{"_index":"orders-s3cret","_id":"s3cret","status":400,"error":{"type":"mapper_parsing_exception","reason":"[orders-s3cret] failed to parse field [n] in document with id 's3cret'. Preview of field's value: 's3cret'"}}}]}`)
	case strings.HasPrefix(r.URL.Path, "/_cat/aliases/") && !strings.Contains(r.URL.Path, "noalias"):
		io.WriteString(w, `[]`)
	default:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"error":{"type":"security_exception","reason":"no permissions for [%s]"}}`, r.URL.Path)
	}
}

// The log has no value of a key, in lines of handlers and in errors that the flow logs.
func TestLogsHaveNoKeys(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(brokenServices))
	defer server.Close()
	const it = `{"pk":"s3cret","SK":"s3cret","entityType":"order","rev":1,"parent":"s3cret","n":"s3cret"}`
	text := strings.ReplaceAll(`source: {tables: [orders]}
sinks:
  jobs: {sqs: {queue: jobs}}
  fifo: {sqs: {queue: jobs.fifo}}
  search: {opensearch: {urls: ['URL'], timeout: 1s}}
routes:
- {name: send, on: 'order#INSERT', send: {to: fifo, group: '{pk}', dedupe: '{pk}'}}
- {name: bad group, on: 'order#INSERT', send: {to: fifo, group: '{pk} ü'}}
- {name: project, on: 'order#INSERT', project: {index: 'orders-{pk}', id: '{pk}', version: 'attribute:rev'}}
- {name: refused, on: 'order#INSERT', project: {index: 'orders-{pk}', id: 'refused-{pk}', version: 'attribute:rev'}}
- {name: no alias, on: 'order#INSERT', project: {index: 'noalias-{pk}', id: '{pk}', version: 'attribute:rev'}}
- {name: sequence, on: 'order#INSERT', project: {index: 'noalias-{pk}', id: '{pk}', version: sequence}}
- {name: name, on: 'order#INSERT', project: {index: '{pk}S', id: '{pk}', version: sequence}}
- {name: no number, on: 'order#INSERT', project: {index: orders, id: '{pk}', version: 'attribute:n'}}
- {name: cascade, on: 'order#REMOVE', cascade: {table: orders, key: [pk, SK], children: [{table: rows, key: [pk, SK], partition: {name: pk, from: pk}}]}}
- {name: worker, on: 'cascade.delete#MESSAGE', log: {}}
- {name: count, on: 'order#*', count: {id: c, markers: marks, table: orders, deleteOrphans: parents, numbers: [{table: parents, attribute: orders, key: {id: parent}}]}}
- {name: sum, on: 'order#*', count: {id: s, markers: marks, numbers: [{table: parents, attribute: orders, key: {id: parent}, of: n}]}}
- {name: log, on: 'order#INSERT', log: {}}
- {name: start, on: 'order#INSERT', escalate: {do: start, kind: k, queue: jobs, watch: jobs2, watchAfter: 20m, alarm: alarms, expireAfter: 1m, ladder: {key: {pk: '{id}', SK: '{id}'}, steps: {pk: '{ladder}'}, escalation: {id: pk, ladder: parent, started: started, status: status, active: open}, step: {id: SK, order: order, waitSeconds: wait}, attempt: {key: {pk: '{id}', SK: 'a{round}{number}'}, escalation: pk, number: number, order: order, stepId: step, at: at, set: {entityType: order}}}}}
- {name: next, on: 'order#MODIFY', escalate: {do: next}}
- {name: resume, on: 'order#MODIFY', escalate: {do: resume}}
- {name: contact, on: 'k.attempt#MESSAGE k.expire#MESSAGE', escalate: {do: contact, contact: {url: '{step.url}', body: new, timeout: 20s, lease: 1m, giveUpAfter: 5m}}}
`, "URL", server.URL)
	text = strings.Replace(text, "  fifo:", "  jobs2: {sqs: {queue: jobs2}}\n  alarms: {sqs: {queue: alarms}}\n  fifo:", 1)
	c, err := Parse("f", "", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	app, err := c.Build(t.Context(), Setup{Logger: logger, AWS: func(string) aws.Config {
		return aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), RetryMaxAttempts: 1}
	}})
	if err != nil {
		t.Fatal(err)
	}
	keys := streamtest.WithKeys("pk", "SK")
	now := time.Now().UTC().Format(time.RFC3339)
	message := func(kind string) sluice.Record {
		m := sluice.Message{ID: "1", Body: fmt.Sprintf(`{"kind":%q,"escalation":"s3cret","ladder":"s3cret","step":"s3cret","order":1,"number":0,"notBefore":%q,"dedupeKey":"s3cret#0"}`, kind, now)}
		return *m.Record("arn:aws:sqs:us-east-1:123456789012:jobs")
	}
	failed := map[string]bool{}
	for _, rec := range []sluice.Record{
		streamtest.Insert("orders", plain(it), keys),
		streamtest.Modify("orders", plain(it), plain(strings.Replace(it, `"n"`, `"status":"open","at":"2024-01-01T00:00:05Z","n"`, 1)), keys),
		streamtest.Remove("orders", plain(it), keys),
		message("k.attempt"), message("k.expire"), message("k.watch"),
	} {
		routes, err := app.Router.Match(nil, &rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, rt := range routes {
			if err := rt.Handler(t.Context(), &rec); err != nil && !sluice.IsSkip(err) {
				failed[rt.Name] = true
				logger.Warn("record failed", "route", rt.Name, "error", err) // as the flow logs it
			}
		}
	}
	for _, r := range app.Routes {
		if !failed[r.Name] && r.Kind != "log" {
			t.Errorf("route %s has not failed, and shows nothing", r.Name)
		}
	}
	for _, line := range strings.Split(log.String(), "\n") {
		if strings.Contains(line, "s3cret") {
			t.Errorf("the log has the key: %s", line)
		}
	}
	if t.Failed() || testing.Verbose() {
		t.Log(log.String())
	}
}
