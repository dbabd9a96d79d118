package streamsapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// early answers once the last byte of the request has come, and looks for the
// request's end, as net/http does, only while its answer is being read.
type early struct{ answer string }

func (e early) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.ReadFull(req.Body, make([]byte, req.ContentLength)); err != nil {
		return nil, err
	}
	body := &lateBody{request: req.Body, answer: strings.NewReader(e.answer)}
	return &http.Response{StatusCode: 200, ContentLength: int64(len(e.answer)), Body: body, Request: req}, nil
}

type lateBody struct {
	request io.Reader
	answer  io.Reader
}

func (b *lateBody) Read(p []byte) (int, error) {
	if _, err := io.Copy(io.Discard, b.request); err != nil {
		return 0, fmt.Errorf("connection closed: end of the request: %w", err)
	}
	return b.answer.Read(p)
}

func (b *lateBody) Close() error { return nil }

func TestAnAnswerBeforeTheEndOfTheRequest(t *testing.T) {
	const answer = `{"Records":[]}`
	c := New(aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		BaseEndpoint: aws.String("http://stub"), HTTPClient: &http.Client{Transport: early{answer}}})
	body, err := c.GetRecords(t.Context(), "it", 0)
	if err != nil || string(body) != answer {
		t.Errorf("%s, %v", body, err)
	}
}
