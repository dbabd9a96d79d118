package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/opensearch-project/opensearch-go/v2/opensearchtransport"
)

// Client makes requests to one cluster. It is safe for concurrent use. It has no
// goroutine and needs no Close.
type Client struct {
	transport *opensearchtransport.Client
	timeout   time.Duration
	bare      bool // do not compress requests
}

// Connect returns a Client, or an error that names every invalid field. It makes
// no request.
func Connect(c Connection) (*Client, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	base, err := c.roundTripper()
	if err != nil {
		return nil, err
	}
	return connect(c, base)
}

// connect is Connect for a validated Connection, over base.
func connect(c Connection, base http.RoundTripper) (*Client, error) {
	urls := c.urls()
	w := &wire{base: base, hosts: newHosts(urls)}
	if c.AWS != nil {
		w.sign = signer(*c.AWS, c.Service)
	}
	t, err := opensearchtransport.New(opensearchtransport.Config{
		URLs: urls, Username: c.Username, Password: c.Password,
		Transport: w,
		// The caller repeats requests, because it knows their effect. The
		// transport would resend a drained body.
		DisableRetry: true,
		ConnectionPoolFunc: func([]*opensearchtransport.Connection, opensearchtransport.Selector) opensearchtransport.ConnectionPool {
			return w.hosts
		},
	})
	if err != nil {
		return nil, fmt.Errorf("opensearch: %w", err)
	}
	return &Client{transport: t, timeout: c.Timeout, bare: c.Service == "aoss" || !slices.ContainsFunc(urls, isRemote)}, nil
}

// isRemote reports whether a URL points to another machine.
func isRemote(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Call makes one request, without retries. path begins with a slash. Its parts are
// percent-encoded (url.PathEscape), and it may have a query:
// "/orders/_doc/a%2Fb?routing=r".
//
// in is sent as JSON. nil sends no body; a []byte is sent unchanged. The response
// is decoded into out. nil ignores it; a *[]byte gets it unchanged.
//
// A response with a status of 300 or more is a *[StatusError], inside
// sluice.Overloaded for a refusal for load. Without a readable response the error
// names the host; the request may have been done.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	body, err := encodeBody(in)
	if err != nil {
		return fmt.Errorf("opensearch: %s %s: %w", method, path, err)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	r := request{method: method, path: path, contentType: "application/json"}
	if body != nil {
		r.length = int64(len(body))
		r.body = func() io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }
	}
	a, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	defer a.body.Close()
	if a.status >= 300 {
		return a.failure().marked()
	}
	if err := decodeBody(a.body, out); err != nil {
		return a.wrap(fmt.Errorf("its answer cannot be read: %w", err))
	}
	return nil
}

// request is one request of do.
type request struct {
	method, path string
	contentType  string
	encoding     string // of the body
	identity     bool   // ask for an uncompressed response
	length       int64
	body         func() io.ReadCloser // nil: no body. Every returned body must be closed
}

// answer is the result of do. Its body must be closed.
type answer struct {
	request
	host   string
	status int
	header http.Header
	body   io.ReadCloser
}

// do makes one request and returns its response with any status.
func (c *Client) do(ctx context.Context, r request) (*answer, error) {
	u, err := url.Parse(r.path)
	if err != nil || u.Host != "" || u.Scheme != "" || len(u.Path) == 0 || u.Path[0] != '/' {
		return nil, fmt.Errorf("opensearch: the path %q does not begin with a slash, or is not percent-encoded", r.path)
	}
	x := &exchange{}
	req := (&http.Request{
		Method: r.method, URL: u, Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(context.WithValue(ctx, exchangeKey{}, x))
	if r.body != nil {
		req.ContentLength = r.length
		req.Body = r.body()
		req.GetBody = func() (io.ReadCloser, error) { return r.body(), nil }
		req.Header.Set("Content-Type", r.contentType)
	}
	if r.encoding != "" {
		req.Header.Set("Content-Encoding", r.encoding)
	}
	if r.identity {
		req.Header.Set("Accept-Encoding", "identity")
	}
	req.Header.Set("Accept", "application/json")
	res, err := c.transport.Perform(req) //nolint:bodyclose // it is empty; the caller closes that of the exchange
	a := &answer{request: r, host: x.host}
	if err != nil {
		return nil, a.wrap(explain(ctx, err))
	}
	a.status, a.header, a.body = res.StatusCode, res.Header, x.body
	return a, nil
}

func encodeBody(in any) ([]byte, error) {
	switch in := in.(type) {
	case nil:
		return nil, nil
	case []byte:
		return in, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(in); err != nil {
		return nil, fmt.Errorf("the body cannot be encoded: %w", err)
	}
	return b.Bytes(), nil
}

func decodeBody(body io.Reader, out any) error {
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = b
		return nil
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return errors.New("it is empty")
	}
	return json.Unmarshal(b, out)
}
