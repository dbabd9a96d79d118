package awsclient

import (
	"bytes"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// WholeRequests returns a client that hands c each request's body as bytes in
// memory.
//
// The SDK closes a request's body as soon as the answer begins. net/http may
// not have seen the end of that body yet, though all of it has been sent; it
// then takes the closed body for a failure and closes the connection, under
// the answer that is still being read. A server that answers within
// microseconds provokes that. Of bytes in memory net/http knows the end, and
// sends them in one write together with the header.
func WholeRequests(c aws.HTTPClient) aws.HTTPClient { return wholeRequests{c} }

type wholeRequests struct{ client aws.HTTPClient }

func (w wholeRequests) Do(req *http.Request) (*http.Response, error) {
	if req.Body == nil || req.ContentLength <= 0 {
		return w.client.Do(req)
	}
	body := make([]byte, req.ContentLength)
	_, err := io.ReadFull(req.Body, body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	whole := req.WithContext(req.Context()) // a shallow copy: the SDK continues with its own
	whole.Body = io.NopCloser(bytes.NewReader(body))
	return w.client.Do(whole)
}
