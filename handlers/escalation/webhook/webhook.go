package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/retryafter"
)

// Options configure a Client; the zero value is ready to use.
type Options struct {
	Timeout      time.Duration // of one call with its redirects (default 10 s)
	MaxBody      int           // bytes of a body (default 256 KiB)
	AllowHTTP    bool          // allows http URLs
	AllowPrivate bool          // allows loopback, private and link-local addresses
	UserAgent    string        // default "sluice-webhook/1"
	Now          func() time.Time
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.MaxBody = cmp.Or(o.MaxBody, 256<<10)
	o.UserAgent = cmp.Or(o.UserAgent, "sluice-webhook/1")
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("webhook: Options.Timeout is %v; allowed are 0 (the default) and above", o.Timeout))
	}
	if o.MaxBody < 0 {
		errs = append(errs, fmt.Errorf("webhook: Options.MaxBody is %d; allowed are 0 (the default) and above", o.MaxBody))
	}
	return errors.Join(errs...)
}

// Limits on reading and waiting, whatever the server sends.
const (
	maxRedirects = 5
	maxAnswer    = 64 << 10 // read to reuse the connection
)

// Client posts to URLs. It is safe for concurrent use.
type Client struct {
	o    Options
	http *http.Client
}

// New returns a Client, or an error that names every invalid option.
func New(o Options) (*Client, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c := &Client{o: o}
	dialer := &net.Dialer{Timeout: o.Timeout, ControlContext: c.control}
	c.http = &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: c.redirect,
		Transport: &http.Transport{ // without a proxy: it would dial for us
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    o.Timeout,
			MaxIdleConns:           100,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
	return c, nil
}

// Post posts body, which is JSON, to a URL. key is the idempotency key: the same in
// every call for the same event. nil is a 2xx response. These failures are
// [sluice.Permanent]: 4xx except 408, 425 and 429; a redirect that is not
// followed; an invalid or forbidden URL. Any other error is temporary. 429, and
// 503 with a Retry-After, are [sluice.Overloaded]. A Retry-After makes an error a
// [sluice.RetryAfter], for at most an hour. Errors contain the host, never the
// rest of the URL, which may contain secrets.
func (c *Client) Post(ctx context.Context, rawURL, key string, body []byte) error {
	u, err := c.check(rawURL, key, body)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("webhook: %w", err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return sluice.Permanent(fmt.Errorf("webhook to %s: no request can be made", u.Host))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("User-Agent", c.o.UserAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return c.failed(u.Host, err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // only the status matters
	return c.answered(u.Host, resp)
}

func (c *Client) check(rawURL, key string, body []byte) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, errors.New("the destination is no URL such as https://example.com/hook")
	case !c.speaks(u):
		return nil, fmt.Errorf("the destination on %s is %s, want https", u.Host, u.Scheme)
	case key == "":
		return nil, errors.New("the idempotency key is missing")
	case len(body) > c.o.MaxBody:
		return nil, fmt.Errorf("the body has %d bytes; allowed are %d (Options.MaxBody)", len(body), c.o.MaxBody)
	}
	return u, nil
}

func (c *Client) speaks(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && c.o.AllowHTTP
}

// forbiddenError is the error for a forbidden address.
type forbiddenError struct{ address string }

func (e *forbiddenError) Error() string {
	return fmt.Sprintf("address %s is not public; Options.AllowPrivate allows it", e.address)
}

// control checks the dialled address, after name resolution, so that no name leads
// to a private address.
func (c *Client) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	if c.o.AllowPrivate {
		return nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &forbiddenError{address}
	}
	if !public(ap.Addr()) {
		return &forbiddenError{ap.Addr().Unmap().String()}
	}
	return nil
}

// redirect follows redirects that keep the method and the host. Any other redirect
// is returned with its status, which counts as a failure.
func (c *Client) redirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects || req.Method != http.MethodPost || req.URL.Host != via[0].URL.Host || !c.speaks(req.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

func (c *Client) failed(host string, err error) error {
	if forbidden, ok := errors.AsType[*forbiddenError](err); ok {
		return sluice.Permanent(fmt.Errorf("webhook to %s: %w", host, forbidden))
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL
	}
	if strings.HasPrefix(err.Error(), "failed to parse Location header") { // and contains it
		return sluice.Permanent(fmt.Errorf("webhook to %s: answered with a redirect that leads to no URL", host))
	}
	return fmt.Errorf("webhook to %s: %w", host, err)
}

func (c *Client) answered(host string, resp *http.Response) error {
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	err := fmt.Errorf("webhook to %s: answered %d", host, code)
	switch {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		header := resp.Header.Get("Retry-After")
		// 429 means too many requests (RFC 6585). A 503 may be an outage, but
		// with a Retry-After it is a refusal for load (RFC 9110, section
		// 15.6.4).
		if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable && header != "" {
			err = sluice.Overloaded(err)
		}
		if after := retryafter.Parse(header, c.o.Now()); after > 0 {
			return sluice.RetryAfter(after, err)
		}
		return err
	case code >= 300 && code < 400:
		return sluice.Permanent(fmt.Errorf("%w, a redirect that is not followed", err))
	}
	return sluice.Permanent(err)
}
