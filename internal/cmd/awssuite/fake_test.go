package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// fakeAWS answers the calls that the suite itself makes, in the shapes of the
// API references. What is created takes looks calls of Describe until it can be
// used, or is gone.
type fakeAWS struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	tables  map[string]*fakeResource
	queues  map[string]*fakeResource
	domains map[string]*fakeResource
	calls   []string                           // operations that change something, in order
	fail    func(op, name string) (status int) // 0: no
	hook    func(op, name string)
	looks   int
	created json.RawMessage // the last request to create a domain
}

type fakeResource struct {
	tags  map[string]string
	state string // CREATING, ACTIVE, DELETING
	looks int
}

// look moves the resource on, and reports whether it is there.
func (r *fakeResource) look() bool {
	if r == nil {
		return false
	}
	if r.looks > 0 {
		r.looks--
	} else if r.state == "CREATING" {
		r.state = "ACTIVE"
	} else if r.state == "DELETING" {
		return false
	}
	return true
}

func newFakeAWS(t *testing.T) *fakeAWS {
	f := &fakeAWS{t: t, looks: 2, tables: map[string]*fakeResource{}, queues: map[string]*fakeResource{}, domains: map[string]*fakeResource{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

func (f *fakeAWS) account() *account {
	a := newAccount(aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "token"), RetryMaxAttempts: 1})
	a.id, a.arn, a.pause, a.settle = "123456789012", "arn:aws:iam::123456789012:user/sara", time.Microsecond, 0
	a.at(endpoints{f.url, f.url, f.url, f.url})
	f.t.Cleanup(a.client.CloseIdleConnections)
	return a
}

// names returns the existing resources, without those being deleted.
func (f *fakeAWS) names() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind, all := range map[string]map[string]*fakeResource{"table ": f.tables, "queue ": f.queues, "domain ": f.domains} {
		for name, r := range all {
			if r.state != "DELETING" {
				names = append(names, kind+name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (f *fakeAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	body.ReadFrom(r.Body)
	service := "es"
	_, op, isJSON := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if isJSON {
		service = map[bool]string{true: "sqs", false: "dynamodb"}[strings.HasPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS")]
	} else {
		op = map[string]string{"POST": "CreateDomain", "GET": "DescribeDomain", "DELETE": "DeleteDomain"}[r.Method]
		if strings.HasPrefix(r.URL.Path, "/2021-01-01/tags") {
			op = "ListTags"
		}
	}
	if auth := r.Header.Get("Authorization"); !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") || !strings.Contains(auth, "/us-east-1/"+service+"/aws4_request") || r.Header.Get("X-Amz-Security-Token") != "token" {
		// Not an error of the test: the port may have been another test's a moment
		// ago, and somebody still asks there.
		http.Error(w, fmt.Sprintf(`{"__type":"MissingAuthenticationToken","message":"%s is not signed for %s"}`, op, service), http.StatusForbidden)
		return
	}
	var in struct {
		TableName, QueueName, QueueUrl, ResourceArn, DomainName string
		Tags                                                    []struct{ Key, Value string }
		TagList                                                 []struct{ Key, Value string }
	}
	json.Unmarshal(body.Bytes(), &in)
	var lower struct {
		Tags map[string]string `json:"tags"`
	}
	json.Unmarshal(body.Bytes(), &lower)

	name := in.TableName + in.QueueName + in.DomainName
	switch {
	case in.QueueUrl != "":
		name = path.Base(in.QueueUrl)
	case in.ResourceArn != "":
		name = path.Base(in.ResourceArn)
	case op == "ListTags":
		arn, _ := url.QueryUnescape(r.URL.Query().Get("arn"))
		name = path.Base(arn)
	case service == "es" && name == "":
		name = path.Base(r.URL.Path)
	}
	if f.hook != nil {
		f.hook(op, name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		if status := f.fail(op, name); status != 0 {
			w.Header().Set("X-Amzn-ErrorType", "InternalException")
			w.WriteHeader(status)
			fmt.Fprint(w, `{"__type":"InternalServerError","message":"the test says so"}`)
			return
		}
	}
	if strings.HasPrefix(op, "Create") || strings.HasPrefix(op, "Delete") || strings.HasPrefix(op, "Update") {
		f.calls = append(f.calls, op+" "+name)
	}
	answer := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			f.t.Error(err)
		}
		w.Write(data)
	}
	refuse := func(status int, kind string) {
		w.Header().Set("X-Amzn-ErrorType", kind+":http://internal.amazon.com/coral/")
		w.WriteHeader(status)
		answer(map[string]string{"__type": kind, "message": kind + ": " + name})
	}
	m := map[string]any{}
	switch op {
	case "ListTables":
		names := []string{}
		for name := range f.tables {
			names = append(names, name)
		}
		answer(map[string]any{"TableNames": names})
	case "CreateTable":
		if f.tables[name] != nil {
			refuse(400, "com.amazonaws.dynamodb.v20120810#ResourceInUseException")
			return
		}
		f.tables[name] = &fakeResource{tags: tagsOf(in.Tags), state: "CREATING", looks: f.looks}
		answer(map[string]any{"TableDescription": map[string]any{"TableName": name, "TableStatus": "CREATING"}})
	case "DescribeTable":
		t := f.tables[name]
		if !t.look() {
			delete(f.tables, name)
			refuse(400, "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException")
			return
		}
		answer(map[string]any{"Table": map[string]any{"TableName": name, "TableStatus": t.state, "TableArn": "arn:aws:dynamodb:us-east-1:123456789012:table/" + name}})
	case "DeleteTable":
		t := f.tables[name]
		if t == nil || t.state == "DELETING" {
			refuse(400, "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException")
			return
		}
		if t.state != "ACTIVE" {
			refuse(400, "com.amazonaws.dynamodb.v20120810#ResourceInUseException")
			return
		}
		t.state, t.looks = "DELETING", f.looks
		answer(map[string]any{"TableDescription": map[string]any{"TableName": name, "TableStatus": "DELETING"}})
	case "ListTagsOfResource":
		list := []map[string]string{}
		for k, v := range f.tables[name].tags {
			list = append(list, map[string]string{"Key": k, "Value": v})
		}
		answer(map[string]any{"Tags": list})
	case "ListQueues":
		urls := []string{}
		for name := range f.queues {
			urls = append(urls, "https://sqs.us-east-1.amazonaws.com/123456789012/"+name)
		}
		answer(map[string]any{"QueueUrls": urls})
	case "CreateQueue":
		f.queues[name] = &fakeResource{tags: lower.Tags, state: "ACTIVE"}
		answer(map[string]any{"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/" + name})
	case "GetQueueUrl", "ListQueueTags", "DeleteQueue":
		q := f.queues[name]
		if q == nil {
			w.Header().Set("X-Amzn-Query-Error", "AWS.SimpleQueueService.NonExistentQueue;Sender")
			refuse(400, "com.amazonaws.sqs#QueueDoesNotExist")
			return
		}
		m["QueueUrl"], m["Tags"] = "https://sqs.us-east-1.amazonaws.com/123456789012/"+name, q.tags
		if op == "DeleteQueue" {
			delete(f.queues, name)
		}
		answer(m)
	case "CreateDomain":
		if f.domains[name] != nil {
			refuse(409, "ResourceAlreadyExistsException")
			return
		}
		f.created = body.Bytes()
		f.domains[name] = &fakeResource{tags: tagsOf(in.TagList), state: "CREATING", looks: f.looks}
		answer(map[string]any{"DomainStatus": map[string]any{"DomainName": name, "ARN": "arn:aws:es:us-east-1:123456789012:domain/" + name, "Created": true, "Processing": true}})
	case "DescribeDomain", "DeleteDomain":
		d := f.domains[name]
		if !d.look() {
			delete(f.domains, name)
			refuse(409, "ResourceNotFoundException")
			return
		}
		if op == "DeleteDomain" {
			if d.state == "CREATING" {
				refuse(400, "ValidationException")
				return
			}
			d.state, d.looks = "DELETING", 100
		}
		status := map[string]any{"DomainName": name, "ARN": "arn:aws:es:us-east-1:123456789012:domain/" + name, "Created": true, "Deleted": d.state == "DELETING", "Processing": d.state != "ACTIVE"}
		if d.state == "ACTIVE" {
			status["Endpoint"] = "search-" + name + ".us-east-1.es.amazonaws.com"
		}
		answer(map[string]any{"DomainStatus": status})
	case "ListTags":
		list := []map[string]string{}
		for k, v := range f.domains[name].tags {
			list = append(list, map[string]string{"Key": k, "Value": v})
		}
		answer(map[string]any{"TagList": list})
	default:
		answer(m)
	}
}

func tagsOf(list []struct{ Key, Value string }) map[string]string {
	tags := map[string]string{}
	for _, t := range list {
		tags[t.Key] = t.Value
	}
	return tags
}

// run runs the command. The function tests stands for the tests of the jobs.
func (f *fakeAWS) run(ctx context.Context, o options, answer string, tests func(ctx context.Context, g map[string]string, all []job) []string) (string, error) {
	var out bytes.Buffer
	w := &world{
		env: func(string) string { return "" }, out: &out, root: "../../..",
		open: func(context.Context) (*account, error) { return f.account(), nil },
		jobs: func(_ string, _, run *regexp.Regexp) ([]job, error) {
			if run.String() != "" {
				return nil, nil
			}
			return []job{{pkg: "sinks/sqs", tests: []string{"TestQueue"}}, {pkg: "reindex", tests: []string{"TestIndex"}, search: true}}, nil
		},
		runJobs: func(ctx context.Context, _ string, all []job, env []string, _ int, _ io.Writer) []string {
			vars := map[string]string{}
			for _, v := range env {
				name, value, _ := strings.Cut(v, "=")
				vars[name] = value
			}
			return tests(ctx, vars, all)
		},
		removing: func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) },
	}
	if answer != "" {
		w.in = strings.NewReader(answer)
	}
	o.timeout = time.Hour
	err := w.main(ctx, o)
	return out.String(), err
}
