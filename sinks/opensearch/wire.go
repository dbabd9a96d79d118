package opensearch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// wire sends the requests that the transport has addressed.
type wire struct {
	base  http.RoundTripper
	hosts *hosts
	sign  func(*http.Request) (*http.Request, error) // may be nil
}

// exchange is data of wire about a request; the request's context carries it.
type exchange struct {
	host string        // asked host, without a user's name
	body io.ReadCloser // of the response
}

type exchangeKey struct{}

// RoundTrip makes one request. The transport above reads every response into
// memory, and loses the error if that fails. So it gets an empty response, and the
// caller takes the real one from the exchange. Errors are wrapped, because the
// transport resends its drained body after a bare io.EOF.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	x, _ := req.Context().Value(exchangeKey{}).(*exchange)
	if x == nil {
		return nil, errors.New("a request that is not of Client.do")
	}
	x.host = req.URL.Scheme + "://" + req.URL.Host
	mendPath(req.URL)
	host := req.URL.Host
	if w.sign != nil {
		var err error
		if req, err = w.sign(req); err != nil {
			return nil, &signError{err}
		}
	}
	res, err := w.base.RoundTrip(req)
	if err != nil {
		if !errors.Is(req.Context().Err(), context.Canceled) {
			w.hosts.reached(host, false)
		}
		return nil, fmt.Errorf("no answer: %w", err)
	}
	w.hosts.reached(host, true)
	x.body = res.Body
	res.Body = http.NoBody
	return res, nil
}

// mendPath prepends a host's path to the escaped form of a request's path. The
// transport does so only for the unescaped form, and %2F would become /.
func mendPath(u *url.URL) {
	if u.RawPath == "" {
		return
	}
	path, err := url.PathUnescape(u.RawPath)
	if err != nil {
		return
	}
	if prefix, ok := strings.CutSuffix(u.Path, path); ok {
		u.RawPath = (&url.URL{Path: prefix}).EscapedPath() + u.RawPath
	}
}

// signError says that a request could not be signed and was not sent.
type signError struct{ err error }

func (e *signError) Error() string { return "the request cannot be signed: " + e.err.Error() }
func (e *signError) Unwrap() error { return e.err }

// signer returns a function that signs requests for service. A header has the
// body's digest, which Serverless needs. The signature omits the length, because
// Serverless refuses it.
func signer(cfg aws.Config, service string) func(*http.Request) (*http.Request, error) {
	s := v4.NewSigner()
	return func(req *http.Request) (*http.Request, error) {
		ctx := req.Context()
		digest, err := digest(req)
		if err != nil {
			return nil, err
		}
		credentials, err := cfg.Credentials.Retrieve(ctx)
		if err != nil {
			return nil, fmt.Errorf("there are no credentials: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run with a role: %w", err)
		}
		signed := req.Clone(ctx)
		signed.Header.Set("X-Amz-Content-Sha256", digest)
		signed.ContentLength = 0
		if err := s.SignHTTP(ctx, credentials, signed, digest, service, cfg.Region, time.Now()); err != nil {
			return nil, err
		}
		signed.ContentLength = req.ContentLength
		return signed, nil
	}
}

// digest returns the SHA-256 of a request's body, without consuming it.
func digest(req *http.Request) (string, error) {
	h := sha256.New()
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return "", err
		}
		defer body.Close()
		if _, err := io.Copy(h, body); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
