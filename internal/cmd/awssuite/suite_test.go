package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
)

const prefix = "sluice-test"

// client has the clients of a test in the suite.
type client struct {
	tables *dynamodb.Client
	queues *sqs.Client
	prefix string
}

func clientOf(env map[string]string) client {
	cfg := aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""), RetryMaxAttempts: 1}
	return client{
		tables: dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(env[localstack.EnvDynamoDB]) }),
		queues: sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = aws.String(env[localstack.EnvSQS]) }),
		prefix: env[localtest.EnvPrefix],
	}
}

func (c client) table(ctx context.Context, name string) error {
	_, err := c.tables.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddbtypes.KeyTypeHash}},
	})
	return err
}

func (c client) queue(ctx context.Context, name string) error {
	_, err := c.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})
	return err
}

// leave is a package of tests that creates three things and deletes one.
func leave(ctx context.Context, env map[string]string, all []job) (failed []string) {
	c := clientOf(env)
	part := "a"
	if all[0].search {
		part = "b"
	}
	gone := c.prefix + "gone-" + part
	err := errors.Join(c.table(ctx, gone), c.table(ctx, c.prefix+"left-"+part), c.queue(ctx, c.prefix+"left-"+part))
	if _, e := c.tables.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &gone}); errors.Join(err, e) != nil {
		return []string{"leave"}
	}
	return nil
}

// others returns the resources of other users in the account.
func (f *fakeAWS) others() []string {
	f.tables["orders"] = &fakeResource{state: "ACTIVE"}
	f.tables[prefix+"ing-x"] = &fakeResource{state: "ACTIVE"}
	f.queues["orders"] = &fakeResource{state: "ACTIVE"}
	f.domains["shop"] = &fakeResource{state: "ACTIVE"}
	return f.names()
}

func TestRunRemovesWhatItMade(t *testing.T) {
	f := newFakeAWS(t)
	others := f.others()
	runs := 0
	out, err := f.run(t.Context(), options{prefix: prefix, engine: defaultEngine}, "y\n", func(ctx context.Context, env map[string]string, all []job) []string {
		runs++
		if env["AWS_ACCESS_KEY_ID"] != "local" || env["AWS_PROFILE"] != "" {
			t.Error("the tests have the caller's credentials")
		}
		return leave(ctx, env, all)
	})
	if err != nil || runs != 2 || !strings.Contains(out, "packages passed") {
		t.Errorf("%d runs, %v\n%s", runs, err, out)
	}
	if got := f.names(); !slices.Equal(got, others) {
		t.Errorf("there are %q, want %q", got, others)
	}
	for _, call := range f.calls {
		if _, name, _ := strings.Cut(call, " "); !strings.HasPrefix(name, prefix+"-") {
			t.Errorf("it changed what is not its own: %s", call)
		}
	}
	if !strings.HasPrefix(f.calls[0], "CreateDomain ") {
		t.Errorf("first it did %s: the tests without a domain are to run meanwhile", f.calls[0])
	}

	var domain struct {
		AccessPolicies        string
		DomainEndpointOptions struct{ EnforceHTTPS bool }
		ClusterConfig         struct{ InstanceType string }
	}
	if err := json.Unmarshal(f.created, &domain); err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Statement []struct {
			Effect, Resource string
			Principal        struct{ AWS []string }
			Action           []string
		}
	}
	if err := json.Unmarshal([]byte(domain.AccessPolicies), &policy); err != nil || len(policy.Statement) != 1 {
		t.Fatal(domain.AccessPolicies, err)
	}
	s := policy.Statement[0]
	if !slices.Equal(s.Principal.AWS, []string{"arn:aws:iam::123456789012:user/sara"}) || s.Resource != "arn:aws:es:us-east-1:123456789012:domain/sluice-test-suite/*" ||
		!domain.DomainEndpointOptions.EnforceHTTPS || domain.ClusterConfig.InstanceType != instanceType {
		t.Errorf("the domain: %s", f.created)
	}
}

// Any call fails once, or from then on. Nothing stays: the cleanup removes the rest of
// the run.
func TestFailureAtEachStep(t *testing.T) {
	for _, forGood := range []bool{false, true} {
		for step := 1; ; step++ {
			f := newFakeAWS(t)
			others := f.others()
			f.looks = 1
			n, failed := 0, ""
			f.fail = func(op, name string) int {
				if n++; n == step || forGood && n > step {
					failed = op + " " + name
					return 400 // the SDK does not try again
				}
				return 0
			}
			out, err := f.run(t.Context(), options{prefix: prefix, engine: defaultEngine, yes: true}, "", leave)
			f.mu.Lock()
			f.fail = nil
			f.mu.Unlock()
			if failed == "" {
				if step < 40 {
					t.Errorf("a run made %d calls only", step)
				}
				break
			}
			left := len(f.names()) > len(others)
			if err == nil && left {
				t.Errorf("%s failed, and it says nothing of what is left: %q\n%s", failed, f.names(), out)
			}
			if left && !strings.Contains(err.Error(), "CLEANUP=1 PREFIX="+prefix) {
				t.Errorf("%s failed: %v", failed, err)
			}
			if !left {
				continue
			}
			if out, err := f.run(t.Context(), options{prefix: prefix, cleanup: true, yes: true}, "", nil); err != nil {
				t.Errorf("cleanup after %s: %v\n%s", failed, err, out)
			}
			if got := f.names(); !slices.Equal(got, others) {
				t.Fatalf("after %s failed there are %q, want %q", failed, got, others)
			}
		}
	}
}

// Ctrl-C in the middle of the tests, and while the domain is being made.
func TestInterrupted(t *testing.T) {
	for name, at := range map[string]string{"tests": "CreateQueue", "the domain": "DescribeDomain", "the creation": "CreateDomain"} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAWS(t)
			others := f.others()
			ctx, cancel := context.WithCancelCause(t.Context())
			looks := 0
			f.hook = func(op, _ string) {
				if op == "DescribeDomain" {
					looks++ // the first asks whether the name is free
				}
				if op == at && looks != 1 || op == at && at == "CreateDomain" || op == at && at == "CreateQueue" {
					cancel(errors.New("Ctrl-C"))
				}
			}
			out, err := f.run(ctx, options{prefix: prefix, engine: defaultEngine, yes: true}, "", leave)
			if err == nil || !strings.Contains(err.Error(), "Ctrl-C") && !errors.Is(err, context.Canceled) {
				t.Errorf("%v\n%s", err, out)
			}
			if got := f.names(); !slices.Equal(got, others) {
				t.Errorf("there are %q, want %q\n%v", got, others, err)
			}
		})
	}
}

// Ctrl-C at the question is a no.
func TestInterruptedQuestion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := world{in: readerFunc(func([]byte) (int, error) { cancel(); select {} }), out: t.Output()}
	if ok, err := w.ask(ctx, "Create this?"); ok || err != nil {
		t.Error(ok, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestAsksFirst(t *testing.T) {
	for _, tt := range []struct{ name, answer, says string }{
		{"no terminal", "", "there is no terminal to ask at; YES=1 says yes"},
		{"no", "n\n", ""}, {"nothing", "\n", ""}, {"not quite", "yeah\n", ""},
	} {
		f := newFakeAWS(t)
		out, err := f.run(t.Context(), options{prefix: prefix, engine: defaultEngine}, tt.answer, func(context.Context, map[string]string, []job) []string {
			t.Error("the tests ran")
			return nil
		})
		if fmt.Sprint(err) == "<nil>" != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if len(f.calls) > 0 || !strings.Contains(out, prefix+"-suite") {
			t.Errorf("%s: %q\n%s", tt.name, f.calls, out)
		}
	}
}

// The suite never uses an existing name.
func TestPrefixIsTaken(t *testing.T) {
	for kind, add := range map[string]func(f *fakeAWS){
		"table " + prefix + "-x":      func(f *fakeAWS) { f.tables[prefix+"-x"] = &fakeResource{state: "ACTIVE"} },
		"queue " + prefix + "-x":      func(f *fakeAWS) { f.queues[prefix+"-x"] = &fakeResource{state: "ACTIVE"} },
		"domain " + prefix + "-suite": func(f *fakeAWS) { f.domains[prefix+"-suite"] = &fakeResource{state: "ACTIVE"} },
	} {
		f := newFakeAWS(t)
		add(f)
		_, err := f.run(t.Context(), options{prefix: prefix, engine: defaultEngine, yes: true}, "", leave)
		if err == nil || !strings.Contains(err.Error(), kind+" is there already") {
			t.Errorf("%s: %v", kind, err)
		}
		if len(f.calls) > 0 {
			t.Errorf("%s: %q", kind, f.calls)
		}
	}
}

// Somebody creates a table of the prefix while the suite runs: it has no tag, and
// stays, also when a test asked for the same name.
func TestLeavesWhatItDidNotMake(t *testing.T) {
	f := newFakeAWS(t)
	foreign := prefix + "-foreign"
	out, err := f.run(t.Context(), options{prefix: prefix, engine: defaultEngine, yes: true}, "", func(ctx context.Context, env map[string]string, all []job) []string {
		f.mu.Lock()
		f.tables[foreign] = &fakeResource{state: "ACTIVE"}
		f.mu.Unlock()
		if err := clientOf(env).table(ctx, foreign); err == nil {
			t.Error("it was made twice")
		}
		return leave(ctx, env, all)
	})
	if err == nil || !strings.Contains(err.Error(), foreign+": "+errNotOurs.Error()) {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = f.run(t.Context(), options{prefix: prefix, cleanup: true}, "y\n", nil)
	if err != nil || !strings.Contains(out, foreign+" has no tag "+tagKey+": it is left alone") {
		t.Errorf("%v\n%s", err, out)
	}
	if got := f.names(); !slices.Equal(got, []string{"table " + foreign}) {
		t.Errorf("there are %q", got)
	}
}

// A run that was killed has left all it made. The cleanup lists that, and asks.
func TestCleanup(t *testing.T) {
	f := newFakeAWS(t)
	others := f.others()
	tags := map[string]string{tagKey: "20261101T120000Z-abcdef"}
	f.tables[prefix+"-a"] = &fakeResource{tags: tags, state: "CREATING", looks: 3}
	f.queues[prefix+"-a.fifo"] = &fakeResource{tags: tags, state: "ACTIVE"}
	f.domains[prefix+"-suite"] = &fakeResource{tags: tags, state: "CREATING", looks: 3}
	all := f.names()
	if out, err := f.run(t.Context(), options{prefix: prefix, cleanup: true}, "n\n", nil); err != nil || !strings.Contains(out, "Remove these 3?") || !slices.Equal(f.names(), all) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := f.run(t.Context(), options{prefix: prefix, cleanup: true}, "", nil); err == nil || !slices.Equal(f.names(), all) {
		t.Errorf("without a terminal: %v", err)
	}
	out, err := f.run(t.Context(), options{prefix: prefix, cleanup: true}, "yes\n", nil)
	if err != nil || !slices.Equal(f.names(), others) {
		t.Errorf("there are %q, want %q; %v\n%s", f.names(), others, err, out)
	}
	f.domains = map[string]*fakeResource{}
	if out, err := f.run(t.Context(), options{prefix: prefix, cleanup: true}, "", nil); err != nil || !strings.Contains(out, "has left nothing") {
		t.Errorf("again: %v\n%s", err, out)
	}
}

// A test reaches only names with the prefix, by actions that policy.json allows.
func TestGateway(t *testing.T) {
	f := newFakeAWS(t)
	f.others()
	g := newGateway(f.account(), prefix, "run")
	defer g.close()
	c := clientOf(map[string]string{localstack.EnvDynamoDB: g.dynamodbURL, localstack.EnvSQS: g.sqsURL})
	ctx := t.Context()
	_, err1 := c.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("orders")})
	_, err2 := c.tables.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]ddbtypes.WriteRequest{prefix + "-a": {}, "orders": {}}})
	_, err3 := c.tables.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("arn:aws:dynamodb:us-east-1:123456789012:table/orders")})
	for _, err := range []error{err1, err2, err3} {
		var missing *ddbtypes.ResourceNotFoundException
		if !errors.As(err, &missing) {
			t.Errorf("another's table: %v", err)
		}
	}
	if _, err := c.queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String("https://sqs.us-east-1.amazonaws.com/123456789012/orders")}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("another's queue: %v", err)
	}
	for _, err := range []error{c.table(ctx, "mine"), c.queue(ctx, "mine")} {
		if err == nil || !strings.Contains(err.Error(), "mine does not begin with sluice-test-: name it with localtest.Name") {
			t.Errorf("a name without the prefix: %v", err)
		}
	}
	if _, err := c.tables.CreateBackup(ctx, &dynamodb.CreateBackupInput{TableName: aws.String(prefix + "-a"), BackupName: aws.String("b")}); err == nil || !strings.Contains(err.Error(), "policy.json does not allow dynamodb:CreateBackup") {
		t.Errorf("an action that is not allowed: %v", err)
	}
	if len(f.calls) > 0 {
		t.Errorf("AWS was asked to %q", f.calls)
	}

	// Deleted and created again, as a test of a stream does.
	for range 2 {
		if err := c.table(ctx, prefix+"-again"); err != nil {
			t.Fatal(err)
		}
		if got := f.tables[prefix+"-again"]; got.state != "ACTIVE" || got.tags[tagKey] != "run" {
			t.Errorf("the table is %+v", got)
		}
		if _, err := c.tables.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(prefix + "-again")}); err != nil {
			t.Fatal(err)
		}
	}
	if left := g.created(); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestPlan(t *testing.T) {
	a := newFakeAWS(t).account()
	text := plan(options{prefix: prefix, engine: defaultEngine, timeout: 3 * time.Hour}, a, true)
	for _, want := range []string{
		"Account 123456789012, Region us-east-1, as arn:aws:iam::123456789012:user/sara", "up to 280, named sluice-test-…",
		"sluice-test-suite: one t3.small.search with 10 GiB, OpenSearch_2.19; only you may use it", "0.04 USD for each hour begun", "below 3 USD",
		"an hour", "https://aws.amazon.com/opensearch-service/pricing/", "policy.json", "make aws CLEANUP=1 PREFIX=sluice-test",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan lacks %q:\n%s", want, text)
		}
	}
	page, err := os.ReadFile("../../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "the cost (below 3 USD)") {
		t.Error("docs/testing.md names another cost than the plan")
	}
	text = plan(options{prefix: prefix, opensearch: "https://search-x.us-east-1.es.amazonaws.com"}, a, true)
	if strings.Contains(text, instanceType) || !strings.Contains(text, "indices are made in https://search-x") || !strings.Contains(text, "half an hour") {
		t.Errorf("with a domain that is there:\n%s", text)
	}
	if text = plan(options{prefix: prefix}, a, false); strings.Contains(text, "domain") || strings.Contains(text, "whole suite") {
		t.Errorf("without tests that need one:\n%s", text)
	}
	if text = plan(options{prefix: prefix, pkg: "^sinks/sqs"}, a, false); !strings.Contains(text, "the whole suite: this run makes fewer") {
		t.Errorf("of one package:\n%s", text)
	}
}

func TestUsage(t *testing.T) {
	f := newFakeAWS(t)
	for o, want := range map[options]string{
		{}:                             "no prefix",
		{prefix: "Sluice"}:             "small letters",
		{prefix: "ab"}:                 "3 to 16",
		{prefix: "a-"}:                 "3 to 16",
		{prefix: "1abc"}:               "a letter first",
		{prefix: "abc-"}:               "no hyphen last",
		{prefix: "a23456789012345678"}: "3 to 16",
		{prefix: "abc", opensearch: "search-x.es.amazonaws.com"}: "want a URL",
		{prefix: "abc", run: "TestNobodyHas"}:                    "no test with servers",
		{prefix: "abc", local: true}:                             localstack.EnvDynamoDB,
	} {
		if _, err := f.run(t.Context(), o, "", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, ok := range []string{"abc", "sluice-test", "a234567890123456"} {
		if err := checkPrefix(ok); err != nil {
			t.Error(err)
		}
	}
}

// Each test that uses servers runs against AWS, or is left out for a reason.
func TestJobs(t *testing.T) {
	any := regexp.MustCompile("")
	all, err := findJobs("../../..", any, any)
	if err != nil {
		t.Fatal(err)
	}
	pkgs := map[string]bool{}
	for _, j := range all {
		pkgs[j.pkg] = true
	}
	for _, want := range []string{
		"internal/snapshot", "sources/queue", "internal/reread", "sinks/sqs", "sinks/dynamodb", "sinks/opensearch", "handlers/cascade", "internal/reindex", "internal/daemon", "cmd/sluice", directPkg,
		"examples/estuve", "examples/manhunt", "examples/meadowlark", "examples/products", "examples/transit-gateway", "examples/warehouse",
	} {
		if !pkgs[want] {
			t.Errorf("%s does not run", want)
		}
	}
	if pkgs["flow"] {
		t.Error("flow runs, which has long histories but no test with servers")
	}
	for what := range leftOut {
		pkg, name, isTest := strings.Cut(what, ".")
		files, _ := filepath.Glob(filepath.Join("../../..", pkg, "*_test.go"))
		there := len(files) > 0 && !isTest
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			there = there || slices.Contains(tests(file, text), name)
		}
		if !there {
			t.Errorf("%s is left out, and is not there", what)
		}
	}
}

// The policy allows the calls of the suite and the gateway, on names with the prefix
// only. The gateway checks that tests need no more.
func TestPolicy(t *testing.T) {
	var policy struct {
		Statement []struct {
			Effect           string
			Action, Resource []string
		}
	}
	if err := json.Unmarshal(policyText, &policy); err != nil {
		t.Fatal(err)
	}
	for _, s := range policy.Statement {
		for _, r := range s.Resource {
			if !strings.Contains(r, "PREFIX-") && !(r == "*" && slices.IndexFunc(s.Action, func(a string) bool { return !strings.Contains(a, ":List") }) < 0) {
				t.Errorf("%v is allowed on %s", s.Action, r)
			}
		}
	}

	f := newFakeAWS(t)
	seen := map[string]bool{}
	f.hook = func(op, _ string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		seen[op] = true
	}
	if _, err := f.run(t.Context(), options{prefix: prefix, engine: defaultEngine, yes: true}, "", leave); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for a := range actions() {
		_, op, _ := strings.Cut(a, ":")
		allowed[op] = true
	}
	for _, op := range append(slices.Sorted(maps.Keys(seen)), "TagResource", "TagQueue", "AddTags") {
		if !allowed[op] {
			t.Errorf("policy.json does not allow %s", op)
		}
	}
	if len(seen) < 12 {
		t.Errorf("only %v was called", seen)
	}
}
