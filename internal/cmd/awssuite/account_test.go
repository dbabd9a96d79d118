package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// Credentials and Region come from the SDK's usual places. The error for a missing one
// says what to do.
func TestOpenAccount(t *testing.T) {
	status := 200
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		if status != 200 {
			fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredToken</Code><Message>The security token included in the request is expired</Message></Error></ErrorResponse>`)
			return
		}
		fmt.Fprint(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
			<Arn>arn:aws:sts::123456789012:assumed-role/admin/sara</Arn><UserId>AIDA:sara</UserId><Account>123456789012</Account>
			</GetCallerIdentityResult></GetCallerIdentityResponse>`)
	}))
	defer sts.Close()
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_STS": sts.URL,
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
	refused := func(want string) {
		t.Helper()
		if _, err := openAccount(t.Context()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	refused("no Region: set AWS_REGION=us-east-1")
	t.Setenv("AWS_REGION", "eu-west-1")
	refused("Region eu-west-1: the tests name us-east-1; set AWS_REGION=us-east-1")
	t.Setenv("AWS_REGION", "us-east-1")
	refused("no credentials: ")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	status = 403
	refused("the credentials do not work: ")
	status = 200
	a, err := openAccount(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a.id != "123456789012" || a.domainARN("d") != "arn:aws:es:us-east-1:123456789012:domain/d" {
		t.Errorf("%+v", a)
	}
	if want := (endpoints{"https://dynamodb.us-east-1.amazonaws.com", "https://streams.dynamodb.us-east-1.amazonaws.com", "https://sqs.us-east-1.amazonaws.com", "https://es.us-east-1.amazonaws.com"}); a.urls != want {
		t.Errorf("%+v", a.urls)
	}
}
