package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/accounts/ststest"
	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/streamtest"
)

const (
	readerRole = "arn:aws:iam::111111111111:role/reader"
	writerRole = "arn:aws:iam::222222222222:role/writer"
	takerRole  = "arn:aws:iam::333333333333:role/taker"
)

// cloud is DynamoDB, SQS and STS, and notes which access keys signed the calls.
type cloud struct {
	dynamodb, sqs string // endpoints
	sts           *ststest.Server
	sent          chan string

	mu      sync.Mutex
	callers map[string]string // by operation
}

func newCloud(t *testing.T, service *streamtest.Service) *cloud {
	c := &cloud{sent: make(chan string, 10), callers: map[string]string{}}
	c.sts = &ststest.Server{Roles: map[string]ststest.Role{
		readerRole: {Caller: "OWN", ExternalID: "x1"}, writerRole: {Caller: "OWN", ExternalID: "x2"}, takerRole: {Caller: "OWN"},
	}}
	serve := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	target, err := url.Parse(service.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	c.dynamodb = serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.note(r)
		proxy.ServeHTTP(w, r)
	}))
	c.sqs = serve(http.HandlerFunc(c.queue))
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "OWN", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL_STS": serve(c.sts), "AWS_CONFIG_FILE": "none", "AWS_SHARED_CREDENTIALS_FILE": "none", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	return c
}

func (c *cloud) note(r *http.Request) {
	key, _ := ststest.Caller(r)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.callers[operation]; !strings.Contains(before, key) {
		c.callers[operation] = strings.TrimPrefix(before+" "+key, " ")
	}
}

func (c *cloud) queue(w http.ResponseWriter, r *http.Request) {
	c.note(r)
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation {
	case "ReceiveMessage":
		<-r.Context().Done()
	case "SendMessageBatch":
		var in struct {
			Entries []struct{ ID, MessageBody string }
		}
		_ = json.Unmarshal(body, &in)
		for _, e := range in.Entries {
			c.sent <- e.MessageBody
		}
		io.WriteString(w, `{"Successful":[{"Id":"0","MessageId":"m","MD5OfMessageBody":"`+md5Of(in.Entries[0].MessageBody)+`"}],"Failed":[]}`)
	case "SendMessage":
		var in struct{ MessageBody string }
		_ = json.Unmarshal(body, &in)
		c.sent <- in.MessageBody
		io.WriteString(w, `{"MessageId":"m","MD5OfMessageBody":"`+md5Of(in.MessageBody)+`"}`)
	case "GetQueueUrl":
		var in struct{ QueueName string }
		_ = json.Unmarshal(body, &in)
		io.WriteString(w, `{"QueueUrl":"`+c.sqs+`/1/`+in.QueueName+`"}`)
	default:
		io.WriteString(w, `{"Attributes":{"VisibilityTimeout":"30","MessageRetentionPeriod":"345600"}}`)
	}
}

// by returns the access keys of operations.
func (c *cloud) by(operations ...string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := maps.Clone(c.callers)
	maps.DeleteFunc(found, func(name, _ string) bool { return !slices.Contains(operations, name) })
	return found
}

// file writes a configuration, and returns its name.
func (c *cloud) file(t *testing.T, text string) string {
	dir := t.TempDir()
	name := filepath.Join(dir, "shop.yaml")
	text = strings.NewReplacer("@dynamodb", c.dynamodb, "@sqs", c.sqs, "@state", filepath.Join(dir, "state.db")).Replace(text)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const acrossAccounts = `source:
  tables: [orders]
  queues: [in]
  start: TRIM_HORIZON
  aws: {endpoint: "@dynamodb", assumeRole: {arn: "` + readerRole + `", externalId: x1}}
sinks:
  out: {sqs: {queue: "@sqs/2/out", aws: {assumeRole: {arn: "` + writerRole + `", externalId: x2, sessionName: orders}}}}
  in: {sqs: {queue: in, aws: {endpoint: "@sqs", assumeRole: {arn: "` + takerRole + `"}}}}
routes:
  - {name: send, on: "order#INSERT", send: {to: out, body: '{"id":"{pk}"}'}}
daemon: {state: "@state", listen: "off"}
`

// A daemon reads a stream of one account, consumes a queue of a second, and writes to a
// queue of a third. It shows the accounts without external ids.
func TestRunInSeveralAccounts(t *testing.T) {
	service := streamtest.NewService(t)
	service.CreateTable("orders", streamtest.TableOptions{}).Put(`{"pk":{"S":"o-1"},"entityType":{"S":"order"}}`)
	c := newCloud(t, service)
	name := c.file(t, acrossAccounts)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"run", "-c", name, "--listen", "127.0.0.1:0", "--region", "eu-west-1"}, os.Getenv, io.Discard, &stderr)
	}()
	select {
	case body := <-c.sent:
		if body != `{"id":"o-1"}` {
			t.Errorf("sent %s", body)
		}
	case exit := <-ended:
		t.Fatalf("exit %d\n%s", exit, &stderr)
	}
	for c.by("ReceiveMessage")["ReceiveMessage"] == "" { // the consumer starts beside the stream
		select {
		case exit := <-ended:
			t.Fatalf("exit %d\n%s", exit, &stderr)
		default:
		}
	}
	state := filepath.Join(filepath.Dir(name), "state.db")
	at, err := access.ReadAddress(access.AddressFileOf(state), access.FileOf(state))
	if err != nil {
		t.Fatal(err)
	}
	token, err := access.Read(access.FileOf(state))
	if err != nil {
		t.Fatal(err)
	}
	var settings page.Settings
	if err := (&letterClient{base: "http://" + at, token: daemonToken{token: token}, http: new(http.Client)}).get(ctx, "GET", "/api/settings", nil, &settings); err != nil {
		t.Fatal(err)
	}
	shown := slices.DeleteFunc(settings.Values, func(one page.Setting) bool { return !strings.HasSuffix(one.Name, "aws") })
	if diff := cmp.Diff([]page.Setting{
		{Name: "aws", Value: "Region eu-west-1"}, {Name: "source.aws", Value: "role " + readerRole + ", endpoint " + c.dynamodb},
		{Name: "sinks.in.sqs.aws", Value: "role " + takerRole + ", endpoint " + c.sqs}, {Name: "sinks.out.sqs.aws", Value: "role " + writerRole},
	}, shown); diff != "" {
		t.Error(diff)
	}
	stop()
	if exit := <-ended; exit != 0 {
		t.Fatalf("exit %d\n%s", exit, &stderr)
	}
	want := map[string]string{
		"DescribeTable": "ASIAREADER", "GetRecords": "ASIAREADER", "GetShardIterator": "ASIAREADER",
		"SendMessageBatch": "ASIAWRITER", "ReceiveMessage": "ASIATAKER", "GetQueueUrl": "ASIATAKER",
	}
	if diff := cmp.Diff(want, c.by(slices.Collect(maps.Keys(want))...)); diff != "" {
		t.Error(diff)
	}
	assumed := map[ststest.Call]int{}
	for _, call := range c.sts.Calls() {
		assumed[call]++
	}
	if diff := cmp.Diff(map[ststest.Call]int{
		{Caller: "OWN", Role: readerRole, ExternalID: "x1", Session: "sluice"}: 1,
		{Caller: "OWN", Role: writerRole, ExternalID: "x2", Session: "orders"}: 1,
		{Caller: "OWN", Role: takerRole, Session: "sluice"}:                    1,
	}, assumed); diff != "" {
		t.Error(diff)
	}
}

// validate lists the accounts, and with --connect asks each.
func TestValidateAccounts(t *testing.T) {
	service := streamtest.NewService(t)
	service.CreateTable("orders", streamtest.TableOptions{})
	c := newCloud(t, service)
	name := c.file(t, acrossAccounts)
	validate := func(exit int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if got := execute(t.Context(), append([]string{"validate", "-c", name}, args...), os.Getenv, &out, &out); got != exit {
			t.Errorf("exit %d, want %d\n%s", got, exit, &out)
		}
		return out.String()
	}
	shown := validate(0)
	for _, want := range []string{
		"source.aws: role " + readerRole + ", endpoint " + c.dynamodb + "\n",
		"sinks.in.sqs.aws: role " + takerRole + ", endpoint " + c.sqs + "\n",
		"sinks.out.sqs.aws: role " + writerRole + "\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	if len(c.sts.Calls()) > 0 {
		t.Error("validate called STS")
	}
	validate(0, "--connect")
	c.sts.Roles[writerRole] = ststest.Role{Caller: "OWN", ExternalID: "another"}
	delete(c.sts.Roles, readerRole)
	refused := validate(exitFailed, "--connect")
	for _, want := range []string{
		"sinks.out.sqs.aws.assumeRole: cannot assume role " + writerRole + ": STS AssumeRole: AccessDenied: ",
		"; allow the caller, with this externalId, in the role's trust policy, and sts:AssumeRole on the role in the caller's policy",
		"source.aws.assumeRole: cannot assume role " + readerRole + ": STS AssumeRole: AccessDenied: ",
	} {
		if !strings.Contains(refused, want) {
			t.Errorf("no %q in\n%s", want, refused)
		}
	}
	for _, bad := range []string{"AWS_PROFILE", "x2", "the permission"} {
		if strings.Contains(refused, bad) {
			t.Errorf("%q in\n%s", bad, refused)
		}
	}
}

// The flags replace the aws at the top, and nothing else.
func TestAccountFlags(t *testing.T) {
	service := streamtest.NewService(t)
	service.CreateTable("orders", streamtest.TableOptions{})
	c := newCloud(t, service)
	profiles := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(profiles, []byte("[profile dev]\naws_access_key_id = DEV\naws_secret_access_key = secret\nregion = us-east-2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", profiles)
	c.sts.Roles[writerRole] = ststest.Role{Caller: "OWN"}
	const routes = "routes: [{name: x, on: 'a#*', log: {}}]\n"
	for _, tt := range []struct {
		name, text string
		args       []string
		exit       int
		want       string // caller of DescribeTable, or of the output
	}{
		{"none", "", nil, 0, "OWN"},
		{"profile", "", []string{"--profile", "dev"}, 0, "DEV"},
		{"role", "", []string{"--role-arn", writerRole}, 0, "ASIAWRITER"},
		{"profile of the file", "aws: {profile: dev}\n", nil, 0, "DEV"},
		{"role of the file", "aws: {assumeRole: {arn: '" + writerRole + "'}}\n", nil, 0, "ASIAWRITER"},
		{"role instead of profile", "aws: {profile: dev}\n", []string{"--role-arn", writerRole}, 0, "ASIAWRITER"},
		{"profile instead of role", "aws: {assumeRole: {arn: '" + writerRole + "'}}\n", []string{"--profile", "dev"}, 0, "DEV"},
		{"source stays", "source: {tables: [orders], aws: {profile: dev}}\n", []string{"--role-arn", writerRole}, 0, "DEV"},
		{"both", "", []string{"--profile", "dev", "--role-arn", writerRole}, 2, "--profile and --role-arn: want one"},
		{"no role", "", []string{"--role-arn", "writer"}, 2, `--role-arn: "writer" is not the ARN of a role`},
		{"no profile", "", []string{"--profile", "nobody"}, 1, "nobody"},
		{"denied", "", []string{"--role-arn", readerRole}, 1, "--role-arn: cannot assume role " + readerRole},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clear(c.callers)
			if !strings.Contains(tt.text, "source") {
				tt.text += "source: {tables: [orders]}\n"
			}
			name := c.file(t, tt.text+routes)
			env := func(name string) string {
				return map[string]string{"SLUICE_ENDPOINT_DYNAMODB": c.dynamodb}[name]
			}
			var out bytes.Buffer
			if exit := execute(t.Context(), append([]string{"validate", "--connect", "-c", name}, tt.args...), env, &out, &out); exit != tt.exit {
				t.Errorf("exit %d, want %d\n%s", exit, tt.exit, &out)
			}
			if got := c.by("DescribeTable")["DescribeTable"]; tt.exit == 0 && got != tt.want {
				t.Errorf("called by %q, want %q", got, tt.want)
			}
			if tt.exit != 0 && !strings.Contains(out.String(), tt.want) {
				t.Errorf("no %q in\n%s", tt.want, &out)
			}
		})
	}
}

// --region wins over the file's Region.
func TestRegionFlag(t *testing.T) {
	service := streamtest.NewService(t)
	c := newCloud(t, service)
	name := c.file(t, "aws: {region: us-west-2}\nsource: {tables: [none]}\nroutes: [{name: x, on: 'a#*', log: {}}]\n")
	for flag, want := range map[string]string{"": "Region us-west-2 (set by aws.region of the configuration)", "--region=us-east-2": "Region us-east-2 (set by --region)"} {
		var out bytes.Buffer
		env := func(name string) string { return map[string]string{"SLUICE_ENDPOINT_DYNAMODB": c.dynamodb}[name] }
		args := []string{"validate", "--connect", "-c", name}
		if flag != "" {
			args = append(args, flag)
		}
		if exit := execute(t.Context(), args, env, &out, &out); exit != exitFailed || !strings.Contains(out.String(), want) {
			t.Errorf("%q: exit %d, no %q in\n%s", flag, exit, want, &out)
		}
	}
}
