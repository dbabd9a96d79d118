package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/sluicehq/sluice/internal/backoff"
)

// domainStatus is the API's status of a domain; zero if it does not exist.
type domainStatus struct {
	ARN        string
	Endpoint   string // without https://; empty until the domain can be used
	Created    bool
	Deleted    bool // its removal was asked for
	Processing bool
}

// OpenSearch Service's API creates a domain with four calls. Its SDK would be a
// library in the go.mod of everyone who uses Sluice.
const domainPath = "/2021-01-01/opensearch/domain"

// domainRequest is the smallest domain that AWS sells. Only the caller may use
// it, by signed requests over TLS.
func (a *account) domainRequest(name, engine, run string) map[string]any {
	policy, _ := json.Marshal(map[string]any{
		"Version": "2012-10-17",
		"Statement": []any{map[string]any{
			"Effect": "Allow", "Principal": map[string]any{"AWS": []string{a.arn}}, "Action": []string{"es:ESHttp*"},
			"Resource": a.domainARN(name) + "/*",
		}},
	})
	return map[string]any{
		"DomainName":                  name,
		"EngineVersion":               engine,
		"ClusterConfig":               map[string]any{"InstanceType": instanceType, "InstanceCount": 1},
		"EBSOptions":                  map[string]any{"EBSEnabled": true, "VolumeType": "gp3", "VolumeSize": volumeGiB},
		"EncryptionAtRestOptions":     map[string]any{"Enabled": true},
		"NodeToNodeEncryptionOptions": map[string]any{"Enabled": true},
		"DomainEndpointOptions":       map[string]any{"EnforceHTTPS": true, "TLSSecurityPolicy": "Policy-Min-TLS-1-2-2019-07"},
		"AccessPolicies":              string(policy),
		"TagList":                     []any{map[string]string{"Key": tagKey, "Value": run}},
	}
}

func (a *account) domainARN(name string) string {
	return fmt.Sprintf("arn:aws:es:%s:%s:domain/%s", a.cfg.Region, a.id, name)
}

func (a *account) createDomain(ctx context.Context, name, engine, run string) error {
	return a.domainCall(ctx, http.MethodPost, domainPath, a.domainRequest(name, engine, run), nil)
}

func (a *account) describeDomain(ctx context.Context, name string) (domainStatus, error) {
	var out struct{ DomainStatus domainStatus }
	err := a.domainCall(ctx, http.MethodGet, domainPath+"/"+name, nil, &out)
	if e, ok := errors.AsType[*domainError](err); ok && e.missing() {
		return domainStatus{}, nil
	}
	return out.DomainStatus, err
}

// domainReady waits until the domain can be used, and returns its URL.
func (a *account) domainReady(ctx context.Context, name string) (string, error) {
	var s domainStatus
	err := a.wait(ctx, func() (done bool, err error) {
		s, err = a.describeDomain(ctx, name)
		switch {
		case err != nil:
			return false, err
		case s.ARN == "" || s.Deleted:
			return false, errors.New("somebody has removed it")
		}
		return s.Endpoint != "" && s.Created && !s.Processing, nil
	})
	if err != nil {
		return "", fmt.Errorf("domain %s: %w", name, err)
	}
	return "https://" + s.Endpoint, nil
}

// removeDomain returns once the service has taken the removal, which it may do
// only after the domain has been made.
func (a *account) removeDomain(ctx context.Context, name, run string) error {
	return a.wait(ctx, func() (bool, error) {
		s, err := a.describeDomain(ctx, name)
		if err != nil || s.ARN == "" || s.Deleted {
			return true, err
		}
		ours, err := a.owns(ctx, resource{"domain", name}, run)
		if err != nil {
			return false, err
		}
		if !ours {
			return false, errNotOurs
		}
		err = a.domainCall(ctx, http.MethodDelete, domainPath+"/"+name, nil, nil)
		if s.Processing && errors.As(err, new(*domainError)) {
			return false, nil // again when it has been made
		}
		return false, err // the next look sees that it is Deleted
	})
}

// domainError is an answer that is not a success.
type domainError struct {
	status     int
	kind, text string
}

func (e *domainError) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.kind, e.text) }
func (e *domainError) missing() bool { return e.kind == "ResourceNotFoundException" }

// domainCall makes a call of the domain API, again while the service is at fault
// or refuses for load.
func (a *account) domainCall(ctx context.Context, method, uri string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	var err error
	for try := range 5 {
		if try > 0 {
			if err := backoff.Sleep(ctx, a.pause); err != nil {
				return err
			}
		}
		var again bool
		if again, err = a.domainTry(ctx, method, uri, body, out); !again {
			return err
		}
	}
	return err
}

func (a *account) domainTry(ctx context.Context, method, uri string, body []byte, out any) (again bool, err error) {
	resp, err := a.send(ctx, "es", a.urls.domains, method, uri, http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		return ctx.Err() == nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return ctx.Err() == nil, err
	}
	if resp.StatusCode >= 300 {
		e := &domainError{status: resp.StatusCode, kind: errorKind(resp.Header.Get("X-Amzn-ErrorType")), text: string(text)}
		var says struct{ Message string }
		if json.Unmarshal(text, &says) == nil && says.Message != "" {
			e.text = says.Message
		}
		return resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || e.kind == "ThrottlingException", e
	}
	if out == nil {
		return false, nil
	}
	return false, json.Unmarshal(text, out)
}
