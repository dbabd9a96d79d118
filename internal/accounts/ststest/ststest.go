// Package ststest is a fake of STS, for tests.
package ststest

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"time"
)

// Server answers AssumeRole in the query protocol of
// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html.
type Server struct {
	// Roles are the roles by their ARN. Another one is denied.
	Roles map[string]Role
	// Error is answered instead, as a code and a message, unless it is empty.
	Error [2]string

	mu    sync.Mutex
	calls []Call
}

// Role is what a role's trust policy asks for.
type Role struct {
	Caller     string // access key that may assume it
	ExternalID string // "": none is asked for
}

// Call is an AssumeRole that was asked for.
type Call struct{ Caller, Role, ExternalID, Session string }

// Key is the access key of a role. The secret key is "secret".
func Key(role string) string { return "ASIA" + strings.ToUpper(path.Base(role)) }

// Caller returns the access key that signed a request, and its session token.
func Caller(r *http.Request) (key, token string) {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ = strings.Cut(credential, "/")
	return key, r.Header.Get("X-Amz-Security-Token")
}

// Calls returns the calls so far.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("Action") != "AssumeRole" || r.PostFormValue("Version") != "2011-06-15" {
		refuse(w, http.StatusBadRequest, "InvalidAction", "Could not find operation "+r.PostFormValue("Action"))
		return
	}
	c := Call{Role: r.PostFormValue("RoleArn"), ExternalID: r.PostFormValue("ExternalId"), Session: r.PostFormValue("RoleSessionName")}
	c.Caller, _ = Caller(r)
	s.mu.Lock()
	s.calls = append(s.calls, c)
	role, known := s.Roles[c.Role]
	fail := s.Error
	s.mu.Unlock()
	switch {
	case fail[0] != "":
		refuse(w, http.StatusForbidden, fail[0], fail[1])
	case !known || role.Caller != c.Caller || role.ExternalID != "" && role.ExternalID != c.ExternalID:
		// STS has the same answer for all of these.
		refuse(w, http.StatusForbidden, "AccessDenied", "User: arn:aws:iam::111111111111:user/daemon is not authorized to perform: sts:AssumeRole on resource: "+c.Role)
	default:
		fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleResult>
    <AssumedRoleUser><Arn>%s/%s</Arn><AssumedRoleId>AROA:%[2]s</AssumedRoleId></AssumedRoleUser>
    <Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token of %[1]s</SessionToken><Expiration>%[4]s</Expiration></Credentials>
  </AssumeRoleResult>
  <ResponseMetadata><RequestId>c6104cbe-af31-11e0-8154-cbc7ccf896c7</RequestId></ResponseMetadata>
</AssumeRoleResponse>`, text(c.Role), text(c.Session), Key(c.Role), time.Now().Add(15*time.Minute).UTC().Format(time.RFC3339))
	}
}

// refuse answers an error as in
// https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error>
  <RequestId>c6104cbe-af31-11e0-8154-cbc7ccf896c7</RequestId>
</ErrorResponse>`, code, text(message))
}

func text(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes all
	return b.String()
}

// Client is an HTTP client whose requests are calls of a handler.
type Client struct{ http.Handler }

// Do answers a request.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	body := []byte(nil)
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	served := r.Clone(r.Context())
	served.Body = io.NopCloser(strings.NewReader(string(body)))
	w := httptest.NewRecorder()
	c.ServeHTTP(w, served)
	return w.Result(), nil
}
