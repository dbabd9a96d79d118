package opensearch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice/internal/retryafter"
)

// StatusError is a response with a status of 300 or more.
type StatusError struct {
	Method string
	Path   string // without the query
	Host   string // asked host; empty for one document of several
	Status int    // HTTP status
	Type   string // such as index_not_found_exception; may be empty
	Reason string // in the service's words; may be empty, may quote the request

	// RetryAfter is the wait that the response asks for, or 0.
	RetryAfter time.Duration
}

// HTTPStatusCode is Status, under the method name of AWS SDK errors.
func (e *StatusError) HTTPStatusCode() int { return e.Status }

// Error returns the request, the host, the response, and advice for common
// mistakes. It omits what Reason quotes of a document.
func (e *StatusError) Error() string {
	var b strings.Builder
	at := ""
	if e.Host != "" {
		at = " at " + e.Host
	}
	fmt.Fprintf(&b, "opensearch: %s %s%s: status %d", e.Method, e.Path, at, e.Status)
	reason, _, _ := strings.Cut(e.Reason, " Preview of field's value")
	for _, s := range []string{e.Type, reason, e.hint()} {
		if s != "" {
			b.WriteString(": " + s)
		}
	}
	return b.String()
}

func (e *StatusError) hint() string {
	switch e.Status {
	case http.StatusBadRequest:
		if strings.HasPrefix(e.Reason, explicitIndex) {
			return "set rest.action.multi.allow_explicit_index to true in the cluster"
		}
	case http.StatusUnauthorized:
		return "the user or the signature is not accepted: check Username and Password, or the AWS credentials, Region and Service"
	case http.StatusForbidden:
		if strings.Contains(e.Type, "cluster_block") {
			return "the index or the cluster is blocked, for example because a disk is full"
		}
		return "the user or role lacks the permission: check its roles, or the access policy of the domain or collection"
	case http.StatusNotFound:
		if e.Type == "index_not_found_exception" {
			return "create the index, or correct its name"
		}
	case http.StatusRequestEntityTooLarge:
		return "the request is larger than the cluster, or a proxy before it, allows"
	}
	if e.Status < 400 {
		return "the URL leads somewhere else: is it that of the cluster, and its scheme right?"
	}
	return ""
}

// marked returns the error for a handler: sluice.Overloaded for a refusal for
// load.
func (e *StatusError) marked() error {
	return failure{said: e.said(), after: e.RetryAfter}.marked(e)
}

func (e *StatusError) said() said { return said{e.Status, e.Type, e.Reason} }

// maxErrorBody limits what is read of an error response.
const maxErrorBody = 1 << 20

// failure returns the error of the response.
func (a *answer) failure() *StatusError {
	path, _, _ := strings.Cut(a.path, "?")
	e := &StatusError{Method: a.method, Path: path, Host: a.host, Status: a.status, RetryAfter: retryafter.Parse(a.header.Get("Retry-After"), time.Now())}
	body, err := io.ReadAll(io.LimitReader(a.body, maxErrorBody))
	if err != nil {
		e.Reason = "its text cannot be read: " + err.Error()
		return e
	}
	e.Type, e.Reason = parseError(body)
	return e
}

// parseError returns the type and the reason in the body of a response. Their
// place varies: services before the cluster use their own words, and proxies send
// no JSON.
func parseError(body []byte) (typ, reason string) {
	var v struct {
		Error   json.RawMessage
		Message string // from AWS, also as "Message"
	}
	if json.Unmarshal(body, &v) != nil {
		return "", firstWords(body)
	}
	var detail struct{ Type, Reason string }
	var text string
	switch {
	case json.Unmarshal(v.Error, &detail) == nil:
		return detail.Type, detail.Reason
	case json.Unmarshal(v.Error, &text) == nil:
		return "", text
	}
	return "", v.Message
}

// firstWords returns a printable part of a response in another form.
func firstWords(body []byte) string {
	s := strings.Join(strings.Fields(string(body)), " ")
	if !utf8.ValidString(s) {
		return "an answer that is no text"
	}
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}

// wrap adds the request to err.
func (a *answer) wrap(err error) error {
	path, _, _ := strings.Cut(a.path, "?")
	at := ""
	if a.host != "" {
		at = " at " + a.host
	}
	return fmt.Errorf("opensearch: %s %s%s: %w", a.method, path, at, err)
}

// explain adds advice to an error without a response.
func explain(ctx context.Context, err error) error {
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var network *net.OpError
	hint := ""
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case errors.As(err, &unknown):
		hint = "its certificate is not trusted: name the file of its authority in Connection.CAFile"
	case errors.As(err, &record):
		hint = "it does not speak TLS: is http right, instead of https?"
	case errors.As(err, &network) && network.Op == "dial":
		hint = "it cannot be reached: is the URL right, and is the service running?"
	case ctx.Err() != nil:
		hint = "the time ran out"
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%s: %w", hint, err)
}
