package accounts

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/internal/accounts/ststest"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/awserror"
)

const (
	writer = "arn:aws:iam::222222222222:role/writer"
	reader = "arn:aws:iam::333333333333:role/reader"
)

// service notes who signed the requests to it.
type service struct {
	callers []string
	tokens  []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, token := ststest.Caller(r)
	s.callers, s.tokens = append(s.callers, key), append(s.tokens, token)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_, _ = w.Write([]byte("{}"))
}

// newProcess returns accounts that assume roles at a fake STS, and the configuration of a
// service of the process.
func newProcess(sts *ststest.Server) (*Accounts, aws.Config, *service) {
	own := aws.Config{Region: "eu-west-1", Retryer: func() aws.Retryer { return aws.NopRetryer{} }, Credentials: credentials.NewStaticCredentialsProvider("OWN", "secret", "")}
	all := own.Copy()
	all.HTTPClient = ststest.Client{Handler: sts}
	calls := &service{}
	own.HTTPClient = ststest.Client{Handler: calls}
	return New(all, func(name string) (aws.CredentialsProvider, error) {
		if name == "none" {
			return nil, errors.New("failed to get shared config profile, none")
		}
		return credentials.NewStaticCredentialsProvider("PROFILE-"+name, "secret", ""), nil
	}), own, calls
}

func list(t *testing.T, cfg aws.Config) error {
	t.Helper()
	_, err := sqs.NewFromConfig(cfg).ListQueues(t.Context(), nil)
	return err
}

// A role is assumed once for all clients of equal settings, with the credentials of the
// process, and its credentials sign.
func TestRoles(t *testing.T) {
	sts := &ststest.Server{Roles: map[string]ststest.Role{writer: {Caller: "OWN", ExternalID: "shared/1"}, reader: {Caller: "OWN"}}}
	all, own, calls := newProcess(sts)
	one := all.Within(own, Access{Field: "sinks.a.sqs.aws", Role: Role{writer, "shared/1", "orders"}})
	two := all.Within(own, Access{Field: "sinks.b.dynamodb.aws", Region: "us-east-1", Role: Role{writer, "shared/1", "orders"}})
	if len(sts.Calls()) != 0 {
		t.Error("a role was assumed before it is used")
	}
	chained := all.Within(one, Access{Field: "sinks.c.sqs.aws", Role: Role{ARN: reader}})
	profile := all.Within(one, Access{Field: "sinks.d.sqs.aws", Profile: "p"})
	for _, cfg := range []aws.Config{one, one, chained, profile, own} {
		if err := list(t, cfg); err != nil {
			t.Error(err)
		}
	}
	if _, err := dynamodb.NewFromConfig(two).ListTables(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"ASIAWRITER", "ASIAWRITER", "ASIAREADER", "PROFILE-p", "OWN", "ASIAWRITER"}, calls.callers); diff != "" {
		t.Error(diff)
	}
	if calls.tokens[0] != "token of "+writer {
		t.Errorf("session token %q", calls.tokens[0])
	}
	want := []ststest.Call{{Caller: "OWN", Role: writer, ExternalID: "shared/1", Session: "orders"}, {Caller: "OWN", Role: reader, Session: "sluice"}}
	if diff := cmp.Diff(want, sts.Calls()); diff != "" {
		t.Error(diff)
	}
	if one.Region != "eu-west-1" || two.Region != "us-east-1" || awsclient.Place(two) != "in Region us-east-1 (set by sinks.b.dynamodb.aws.region)" {
		t.Error(one.Region, two.Region, awsclient.Place(two))
	}
}

// A role's credentials are renewed before they end, and the old ones sign nothing.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sts := &ststest.Server{Roles: map[string]ststest.Role{writer: {Caller: "OWN"}}}
		all, own, _ := newProcess(sts)
		cfg := all.Within(own, Access{Role: Role{ARN: writer}})
		for _, after := range []struct {
			wait  time.Duration
			calls int
		}{{0, 1}, {13 * time.Minute, 1}, {90 * time.Second, 2}, {0, 2}} {
			time.Sleep(after.wait)
			if err := list(t, cfg); err != nil {
				t.Fatal(err)
			}
			if n := len(sts.Calls()); n != after.calls {
				t.Errorf("after another %v: %d calls, want %d", after.wait, n, after.calls)
			}
		}
	})
}

// The error of a role names its place, the role and what helps, and says no secret. Its
// meaning is that of the role.
func TestRoleErrors(t *testing.T) {
	for _, tt := range []struct {
		name    string
		at      Access
		sts     *ststest.Server
		meaning awserror.Meaning
		want    string
	}{
		{
			"denied", Access{Field: "sinks.a.sqs.aws", Role: Role{ARN: writer}}, &ststest.Server{}, awserror.NotAccepted,
			"SQS ListQueues: sinks.a.sqs.aws.assumeRole: cannot assume role " + writer + ": STS AssumeRole: AccessDenied: User: arn:aws:iam::111111111111:user/daemon is not authorized to perform: sts:AssumeRole on resource: " + writer +
				"; allow the caller in the role's trust policy, and sts:AssumeRole on the role in the caller's policy; if the trust policy asks for an external id, set externalId",
		},
		{
			"another external id", Access{Field: "aws", Role: Role{writer, "s3cret", ""}},
			&ststest.Server{Roles: map[string]ststest.Role{writer: {Caller: "OWN", ExternalID: "other"}}}, awserror.NotAccepted,
			"SQS ListQueues: aws.assumeRole: cannot assume role " + writer + ": STS AssumeRole: AccessDenied: User: arn:aws:iam::111111111111:user/daemon is not authorized to perform: sts:AssumeRole on resource: " + writer +
				"; allow the caller, with this externalId, in the role's trust policy, and sts:AssumeRole on the role in the caller's policy",
		},
		{
			"expired", Access{Field: "aws", Role: Role{ARN: writer}}, &ststest.Server{Error: [2]string{"ExpiredToken", "The security token included in the request is expired"}}, awserror.NotAccepted,
			"SQS ListQueues: aws.assumeRole: cannot assume role " + writer + ": STS AssumeRole: ExpiredToken: The security token included in the request is expired; " +
				"the role is assumed with the credentials of the process: the credentials have expired: renew them, such as by aws sso login; if they are in environment variables, set new ones and restart",
		},
		{
			"no profile", Access{Field: "aws", Profile: "none"}, &ststest.Server{}, awserror.NoCredentials,
			"SQS ListQueues: aws.profile: cannot use profile none: failed to get shared config profile, none",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, own, calls := newProcess(tt.sts)
			err := list(t, all.Within(own, tt.at))
			if err == nil || len(calls.callers) > 0 {
				t.Fatalf("%v, and %d calls of the service", err, len(calls.callers))
			}
			if diff := cmp.Diff(tt.want, awserror.Plain(err.Error())); diff != "" {
				t.Error(diff)
			}
			if m := awserror.Of(err); m != tt.meaning {
				t.Errorf("meaning %v, want %v", m, tt.meaning)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Error("the error has the external id")
			}
			if hint := awserror.Hint(err, "sqs:SendMessage", "queue", "name"); hint != "" {
				t.Errorf("hint %q about the queue", hint)
			}
		})
	}
}

// A role waits for an STS that cannot be reached, as for a service that is down.
func TestUnreachable(t *testing.T) {
	all, own, _ := newProcess(&ststest.Server{})
	all.own.HTTPClient = nil
	all.own.BaseEndpoint = aws.String("http://127.0.0.1:1")
	err := list(t, all.Within(own, Access{Role: Role{ARN: writer}}))
	if m := awserror.Of(err); m != awserror.Lost {
		t.Errorf("meaning %v of %v", m, err)
	}
}

// The endpoint of a source or sink wins over that around it, and over the SDK's variable.
func TestEndpoint(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_SQS", "http://variable.example.com")
	all, own, _ := newProcess(&ststest.Server{})
	own.BaseEndpoint = aws.String("http://outer.example.com")
	var hosts []string
	own.HTTPClient = ststest.Client{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts = append(hosts, r.URL.Host)
		_, _ = w.Write([]byte("{}"))
	})}
	cfg := all.Within(own, Access{Field: "source.aws", Endpoint: "http://inner.example.com"})
	for _, cfg := range []aws.Config{own, cfg} {
		if err := list(t, cfg); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"outer.example.com", "inner.example.com"}, hosts); diff != "" {
		t.Error(diff)
	}
	if at := awsclient.Place(cfg); at != "at http://inner.example.com (set by source.aws.endpoint), Region eu-west-1" {
		t.Error(at)
	}
}

// The tables that are read are in the account of source, all else in that of the top.
func TestServices(t *testing.T) {
	sts := &ststest.Server{Roles: map[string]ststest.Role{writer: {Caller: "OWN"}, reader: {Caller: "OWN"}}}
	all, own, calls := newProcess(sts)
	of := all.Services(func(string) aws.Config { return own }, Access{Field: "aws", Role: Role{ARN: writer}}, Access{Field: "source.aws", Role: Role{ARN: reader}})
	for _, service := range []string{"dynamodb", "sqs", State, "sts"} {
		if err := list(t, of(service)); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"ASIAREADER", "ASIAWRITER", "ASIAWRITER", "OWN"}, calls.callers); diff != "" {
		t.Error(diff)
	}
}

// A program without profiles says so, and does not end.
func TestNoProfiles(t *testing.T) {
	cfg := New(aws.Config{}, nil).Within(aws.Config{}, Access{Field: "sinks.jobs.sqs.aws", Profile: "other"})
	_, err := cfg.Credentials.Retrieve(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "sinks.jobs.sqs.aws.profile: cannot use profile other") {
		t.Errorf("a profile where there are none: %v", err)
	}
}
