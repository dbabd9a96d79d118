package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/internal/accounts/ststest"
	"github.com/sluicehq/sluice/internal/function"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// A function writes to a queue of another account with a role.
func TestFunctionAssumesRoles(t *testing.T) {
	const role = "arn:aws:iam::222222222222:role/writer"
	sts := &ststest.Server{Roles: map[string]ststest.Role{role: {Caller: "OWN", ExternalID: "x1"}}}
	at := httptest.NewServer(sts)
	t.Cleanup(at.Close)
	caller := ""
	sqs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ = ststest.Caller(r)
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(sqs.Close)
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	for name, value := range map[string]string{
		"SLUICE_CONFIG": path, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "OWN", "AWS_SECRET_ACCESS_KEY": "secret",
		"SLUICE_ENDPOINT_STS": at.URL, "SLUICE_ENDPOINT_SQS": sqs.URL, "SLUICE_EMF": "off",
	} {
		t.Setenv(name, value)
	}
	file := func(account string) string {
		return "source: {tables: [orders]}\nsinks: {jobs: {sqs: {queue: jobs, aws: {" + account + "}}}}\nroutes: [{name: x, on: 'order#*', send: {to: jobs}}]\n"
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file("assumeRole: {arn: '" + role + "', externalId: x1}"))
	m, _, err := function.New(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	rec := recordtest.New(recordtest.Spec{Keys: `{"PK":{"S":"1"}}`, New: `{"PK":{"S":"1"},"entityType":{"S":"order"}}`})
	routes, err := m.Match(nil, &rec)
	if err != nil || len(routes) != 1 {
		t.Fatal(routes, err)
	}
	if err := routes[0].Handler(t.Context(), &rec); err == nil || caller != "ASIAWRITER" {
		t.Errorf("called by %q: %v", caller, err)
	}
	if diff := cmp.Diff([]ststest.Call{{Caller: "OWN", Role: role, ExternalID: "x1", Session: "sluice"}}, sts.Calls()); diff != "" {
		t.Error(diff)
	}
	write(file("profile: dev"))
	if _, _, err := function.New(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "sinks.jobs.sqs.aws.profile: a function has no profiles: name a role in assumeRole") {
		t.Error(err)
	}
}
