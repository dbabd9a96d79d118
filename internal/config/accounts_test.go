package config

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/accounts/ststest"
)

const twoAccounts = `source:
  tables: [orders]
  queues: [own]
  aws: {assumeRole: {arn: "arn:aws:iam::111111111111:role/reader", externalId: x1}}
aws: {region: eu-west-1, profile: daemon}
sinks:
  jobs:
    sqs:
      queue: jobs
      aws: {region: us-east-1, assumeRole: {arn: "arn:aws:iam::222222222222:role/writer", externalId: x2, sessionName: orders}}
  log: {sqs: {queue: log}}
  done: {sqs: {queue: done, aws: {profile: other}}}
  search: {opensearch: {urls: ["@cluster"], sign: es, aws: {assumeRole: {arn: "arn:aws:iam::222222222222:role/writer", externalId: x2, sessionName: orders}}}}
  tables: {dynamodb: {aws: {assumeRole: {arn: "arn:aws:iam::333333333333:role/counter"}}}}
routes:
  - {name: tell, on: "order#INSERT", send: {to: log}}
  - {name: end, on: "order#INSERT", send: {to: done}}
  - {name: find, on: "order#*", project: {index: orders, id: "{pk}", version: none}}
  - {name: delete, on: "order#REMOVE", cascade: {key: pk, queue: jobs, children: [{name: line, table: lines, partition: {name: pk, from: pk}, key: pk}]}}
  - {name: count, on: "order#*", count: {id: c, markers: marks, numbers: [{table: totals, attribute: n, key: {pk: customer}}]}}
`

// callers notes which access key signed the requests for each service and Region.
type callers struct {
	mu   sync.Mutex
	seen []string
}

func (c *callers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, _ := ststest.Caller(r)
	_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "/")
	parts := strings.Split(scope, "/") // day, Region, service
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := parts[2] + " in " + parts[1] + " by " + key; !slices.Contains(c.seen, one) {
		c.seen = append(c.seen, one)
	}
	w.WriteHeader(http.StatusBadRequest)
}

// inAccounts returns the setup of a process with the access key OWN.
func inAccounts(sts *ststest.Server, calls *callers) Setup {
	own := aws.Config{
		Region: "eu-west-1", HTTPClient: ststest.Client{Handler: sts},
		Credentials: credentials.NewStaticCredentialsProvider("OWN", "secret", ""),
	}
	all := accounts.New(own, func(name string) (aws.CredentialsProvider, error) {
		return credentials.NewStaticCredentialsProvider("PROFILE-"+name, "secret", ""), nil
	})
	return Setup{Accounts: all, AWS: func(string) aws.Config {
		cfg := own.Copy()
		cfg.HTTPClient = ststest.Client{Handler: calls}
		return cfg
	}}
}

// Each sink calls with the credentials and in the Region of its own aws.
func TestSinksOfAccounts(t *testing.T) {
	sts := &ststest.Server{Roles: map[string]ststest.Role{
		"arn:aws:iam::222222222222:role/writer":  {Caller: "OWN", ExternalID: "x2"},
		"arn:aws:iam::333333333333:role/counter": {Caller: "OWN"},
	}}
	calls := &callers{}
	cluster := httptest.NewServer(calls)
	t.Cleanup(cluster.Close)
	c, err := Parse("f.yaml", "", []byte(strings.Replace(twoAccounts, "@cluster", cluster.URL, 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	app, err := c.Build(t.Context(), inAccounts(sts, calls))
	if err != nil {
		t.Fatal(err)
	}
	if len(sts.Calls()) > 0 {
		t.Error("Build called STS")
	}
	want := map[string]string{
		"done": "sqs in eu-west-1 by PROFILE-other", "jobs": "sqs in us-east-1 by ASIAWRITER", "log": "sqs in eu-west-1 by OWN",
		"search":       "es in eu-west-1 by ASIAWRITER",
		"table orders": "dynamodb in eu-west-1 by OWN", // which is that of source: see accounts.Services
		"table lines":  "dynamodb in eu-west-1 by ASIACOUNTER", "table marks": "dynamodb in eu-west-1 by ASIACOUNTER", "table totals": "dynamodb in eu-west-1 by ASIACOUNTER",
	}
	for _, one := range app.Checks {
		calls.seen = nil
		if err := one.Check(t.Context()); err == nil {
			t.Errorf("%s: no error of a service that refuses all", one.Sink)
		}
		if got := strings.Join(calls.seen, ", "); got != want[one.Sink] {
			t.Errorf("%s: %s, want %s", one.Sink, got, want[one.Sink])
		}
		delete(want, one.Sink)
	}
	if len(want) > 0 {
		t.Errorf("no checks of %v", want)
	}
	if diff := cmp.Diff([]ststest.Call{
		{Caller: "OWN", Role: "arn:aws:iam::222222222222:role/writer", ExternalID: "x2", Session: "orders"},
		{Caller: "OWN", Role: "arn:aws:iam::333333333333:role/counter", Session: "sluice"},
	}, sts.Calls()); diff != "" {
		t.Error(diff)
	}
	consumed := map[string]string{}
	for queue, at := range app.Consumed {
		consumed[queue] = at.Field
	}
	if diff := cmp.Diff(map[string]string{"own": "source.aws", "jobs": "sinks.jobs.sqs.aws"}, consumed); diff != "" {
		t.Error(diff)
	}
}

// A queue of a URL and one of the same name may be in two accounts. The endpoint of the
// tables is none of queues.
func TestAccountsOfQueuesOfOneName(t *testing.T) {
	c := &Config{
		Source: Source{AWS: &Account{Region: "eu-west-1", Endpoint: "https://vpce.example"}},
		Sinks:  map[string]Sink{"jobs": {SQS: &SQS{Queue: "jobs", AWS: &Account{Region: "us-east-1"}}}},
	}
	for queue, want := range map[string]string{"jobs": "sinks.jobs.sqs.aws: Region us-east-1", "https://sqs.eu-west-1.amazonaws.com/111111111111/jobs": "source.aws: Region eu-west-1"} {
		if at, err := c.queueAccess(queue); err != nil || at.String() != want {
			t.Errorf("%s: %s, %v; want %s", queue, at, err, want)
		}
	}
}

func TestMistakesOfAccounts(t *testing.T) {
	file := func(top, source, sinks string) string {
		return "aws: {" + top + "}\nsource: {tables: [orders], aws: {" + source + "}}\nsinks: {" + sinks + "}\nroutes: [{name: x, on: 'a#*', log: {}}]\n"
	}
	const role = "arn: 'arn:aws:iam::123456789012:role/r'"
	for name, tt := range map[string]struct{ text, want string }{
		"profile and role":  {file("profile: p, assumeRole: {"+role+"}", "", ""), "f:1:1: aws: profile and assumeRole are both here; want one: the profile at the top assumes the roles of source and sinks, and a profile may name a role itself (role_arn)"},
		"likewise below":    {file("", "profile: p, assumeRole: {"+role+"}", ""), "f:2:28: source.aws: profile and assumeRole are both here"},
		"no role":           {file("", "assumeRole: {arn: 'arn:aws:iam::1234:role/r'}", ""), `f:2:52: source.aws.assumeRole.arn: "arn:aws:iam::1234:role/r" is not the ARN of a role; want arn:aws:iam::ACCOUNT:role/NAME, with 12 digits for ACCOUNT`},
		"a user":            {file("assumeRole: {arn: 'arn:aws:iam::123456789012:user/u'}", "", ""), `"arn:aws:iam::123456789012:user/u" is not the ARN of a role`},
		"a secret variable": {file("assumeRole: {arn: '${ROLE}'}", "", ""), `aws.assumeRole.arn: "${ROLE}" is not the ARN of a role`},
		"role without ARN":  {file("assumeRole: {externalId: x1}", "", ""), "f:1:19: aws.assumeRole.arn: it is missing"},
		"external id":       {file("assumeRole: {"+role+", externalId: a b}", "", ""), `aws.assumeRole.externalId: "a b" is not an external id`},
		"session":           {file("assumeRole: {"+role+", sessionName: a/b}", "", ""), `aws.assumeRole.sessionName: "a/b" is not the name of a session`},
		"long session":      {file("assumeRole: {"+role+", sessionName: "+strings.Repeat("s", 65)+"}", "", ""), "aws.assumeRole.sessionName: it has 65 characters"},
		"unknown field":     {file("", "rol: x", ""), `source.aws: unknown field "rol"; `},
		"role as a text":    {file("assumeRole: 'arn:aws:iam::123456789012:role/r'", "", ""), `aws.assumeRole: "arn:aws:iam::123456789012:role/r" is not what is wanted here: a mapping with arn`},
		"Region":            {file("", "region: eu-west-1.", ""), `source.aws.region: "eu-west-1." is no Region`},
		"endpoint":          {file("", "endpoint: h", ""), `source.aws.endpoint: "h" is no URL`},
		"plain http":        {file("", "endpoint: 'http://dynamodb.eu-west-1.amazonaws.com'", ""), "source.aws.endpoint: it is plain http to AWS"},
		"endpoint at top":   {file("endpoint: 'http://h'", "", ""), `aws: unknown field "endpoint"; did you mean endpoints?`},
		"unsigned cluster":  {file("", "", "s: {opensearch: {urls: ['https://h'], aws: {region: r}}}"), "sinks.s.opensearch.aws: requests are not signed"},
		"cluster's endpoint": {
			file("", "", "s: {opensearch: {urls: ['https://h'], sign: es, aws: {endpoint: 'https://i'}}}"), "sinks.s.opensearch.aws.endpoint: a cluster is at its urls",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", "", []byte(tt.text), environ(map[string]string{"ROLE": "topsecret"}))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "topsecret") {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// What only Build finds: names that are in two accounts.
func TestMistakesOfSeveralAccounts(t *testing.T) {
	for name, tt := range map[string]struct{ change, to, want string }{
		"one name of two queues": {
			"  log: {sqs: {queue: log}}", "  log: {sqs: {queue: jobs}}",
			"f.yaml:11:3: sinks.log: the queue jobs is consumed, and sinks.jobs.sqs.aws has the same name in another account; want URLs of both",
		},
		"one transaction in two accounts": {
			"markers: marks", "markers: orders",
			"routes[4].count: one transaction changes orders, which source names, and totals of aws of the dynamodb sink: want all in one account",
		},
		"parents in another account": {
			"markers: marks", "deleteOrphans: totals, markers: marks",
			"routes[4].count.deleteOrphans: one transaction changes orders, which source names, and totals of",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(strings.Replace(twoAccounts, "@cluster", "http://127.0.0.1:1", 1), tt.change, tt.to, 1)
			c, err := Parse("f.yaml", "", []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Build(t.Context(), inAccounts(&ststest.Server{}, &callers{}))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}
