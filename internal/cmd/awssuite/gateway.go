package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tagKey marks what the suite made; its value is the run.
const tagKey = "sluice-aws-suite"

//go:embed policy.json
var policyText []byte

// gateway is what the tests see of the account: three servers on this machine's
// loopback, used like the local ones. It signs requests and passes them on. A
// table or queue whose name does not begin with the prefix does not exist here,
// and an action that policy.json does not allow is denied. It tags what tests
// create, waits until it can be used, and remembers its name.
//
// While the suite runs, every program on this machine can use it.
type gateway struct {
	account *account
	prefix  string // with the hyphen
	run     string // the value of the tag
	allowed map[string]bool

	mu     sync.Mutex
	asked  map[resource]bool // what tests asked for; true while it may be there
	calls  map[string]int    // by service
	total  int
	wrote  map[string]time.Time // by table, when the last write was done
	search atomic.Value         // the domain's URL, once it exists

	servers []*httptest.Server
	ended   context.Context
	stop    context.CancelFunc

	// DynamoDB and its streams share one, as they do in DynamoDB Local.
	dynamodbURL, sqsURL, searchURL string
}

func newGateway(a *account, prefix, run string) *gateway {
	g := &gateway{
		account: a, prefix: prefix + "-", run: run, allowed: actions(),
		asked: map[resource]bool{}, calls: map[string]int{}, wrote: map[string]time.Time{},
	}
	g.ended, g.stop = context.WithCancel(context.Background())
	for _, s := range []struct {
		url    *string
		handle http.HandlerFunc
	}{{&g.dynamodbURL, g.serveDynamoDB}, {&g.sqsURL, g.serveSQS}, {&g.searchURL, g.serveSearch}} {
		server := httptest.NewServer(s.handle)
		*s.url = server.URL
		g.servers = append(g.servers, server)
	}
	return g
}

// close waits for calls that create or change something, whose outcome must be
// known before it is removed.
func (g *gateway) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, s := range g.servers {
		s.Config.Shutdown(ctx) //nolint:errcheck // what has taken too long ends with the next line
	}
	g.stop()
	for _, s := range g.servers {
		s.Config.Close()
	}
}

// actions are allowed by policy.json.
func actions() map[string]bool {
	var policy struct{ Statement []struct{ Action []string } }
	if err := json.Unmarshal(policyText, &policy); err != nil {
		panic(err) // it is part of the program
	}
	all := map[string]bool{}
	for _, s := range policy.Statement {
		for _, a := range s.Action {
			all[a] = true
		}
	}
	return all
}

// actionsOf are the actions that a call needs, where they have other names.
var actionsOf = map[string][]string{
	"dynamodb:TransactWriteItems":      {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"},
	"dynamodb:TransactGetItems":        {"dynamodb:GetItem"},
	"sqs:SendMessageBatch":             {"sqs:SendMessage"},
	"sqs:DeleteMessageBatch":           {"sqs:DeleteMessage"},
	"sqs:ChangeMessageVisibilityBatch": {"sqs:ChangeMessageVisibility"},
}

// denied returns the action of a call that policy.json does not allow.
func (g *gateway) denied(service, operation string) string {
	need, ok := actionsOf[service+":"+operation]
	if !ok {
		need = []string{service + ":" + operation}
	}
	if service == "dynamodb" && operation == "CreateTable" || service == "sqs" && operation == "CreateQueue" {
		need = append(need, service+":Tag"+map[string]string{"dynamodb": "Resource", "sqs": "Queue"}[service])
	}
	for _, a := range need {
		if !g.allowed[a] {
			return a
		}
	}
	return ""
}

// request comes from a test.
type request struct {
	w    http.ResponseWriter
	r    *http.Request
	body []byte
	op   string // of X-Amz-Target
}

func (g *gateway) read(w http.ResponseWriter, r *http.Request, service string) (request, bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the test has hung up
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	q := request{w, r, body, op}
	g.mu.Lock()
	g.calls[service]++
	g.total++
	over := g.total > maxCalls
	g.mu.Unlock()
	if over {
		q.refuse("LimitOfTheSuite", fmt.Sprintf("the tests have made %d requests: the suite passes no more", maxCalls))
	}
	return q, !over
}

// forward sends the request on and answers, after a success once done has returned.
// Large answers go through memory: they are of a few MB.
func (g *gateway) forward(ctx context.Context, q request, service, base string, done func()) {
	resp, err := g.account.send(ctx, service, base, q.r.Method, q.r.URL.RequestURI(), q.r.Header, q.body)
	if err != nil {
		panic(http.ErrAbortHandler) // the test's client sees what the gateway saw: a broken connection
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	for _, name := range hopHeaders {
		resp.Header.Del(name)
	}
	maps.Copy(q.w.Header(), resp.Header)
	if resp.StatusCode == http.StatusOK {
		done()
	}
	q.answer(resp.StatusCode, body)
}

func nothing() {}

func (q request) answer(status int, body []byte) {
	q.w.WriteHeader(status)
	q.w.Write(body) //nolint:errcheck // the test has hung up
}

// refuse answers with an error in the service's own form.
func (q request) refuse(code, message string) {
	q.w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	body, _ := json.Marshal(map[string]string{"__type": code, "message": message})
	q.answer(http.StatusBadRequest, body)
}

// serveSearch passes requests to the domain once it exists.
func (g *gateway) serveSearch(w http.ResponseWriter, r *http.Request) {
	q, ok := g.read(w, r, "opensearch")
	if !ok {
		return
	}
	base, _ := g.search.Load().(string)
	action := "ESHttp" + r.Method[:1] + strings.ToLower(r.Method[1:])
	switch {
	case base == "":
		q.answer(http.StatusServiceUnavailable, []byte(`{"error":"there is no domain yet"}`))
	case g.denied("es", action) != "":
		q.answer(http.StatusForbidden, fmt.Appendf(nil, `{"Message":"policy.json does not allow es:%s"}`, action))
	default:
		g.forward(q.r.Context(), q, "es", base, nothing)
	}
}

// remember notes what a call is about to create.
func (g *gateway) remember(r resource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked[r] = true
}

func (g *gateway) forget(r resource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.asked[r]; ok {
		g.asked[r] = false
	}
}

// withTags returns the body of a call that creates something, with the tag.
func withTags(body []byte, name string, tags any) []byte {
	var call map[string]json.RawMessage
	if json.Unmarshal(body, &call) != nil {
		return body // the service reports the mistake
	}
	call[name], _ = json.Marshal(tags)
	tagged, err := json.Marshal(call)
	if err != nil {
		return body
	}
	return bytes.TrimSpace(tagged)
}

// made returns what may still be there of what tests made.
func (g *gateway) created() (all []resource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r, there := range g.asked {
		if there {
			all = append(all, r)
		}
	}
	return all
}

// used says what the tests have asked for.
func (g *gateway) used() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := map[string]int{}
	for r := range g.asked {
		n[r.kind]++
	}
	return fmt.Sprintf("%d tables, %d queues; %d requests to DynamoDB, %d to SQS, %d to OpenSearch",
		n["table"], n["queue"], g.calls["dynamodb"], g.calls["sqs"], g.calls["opensearch"])
}
