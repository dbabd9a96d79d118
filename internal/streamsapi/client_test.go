package streamsapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
)

func client(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return New(aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		BaseEndpoint: &srv.URL})
}

func TestGetRecordsReturnsTheBody(t *testing.T) {
	body := []byte(`{"Records":[],"NextShardIterator":"` + strings.Repeat("n", 100_000) + `"}`)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(body)
	z.Close()
	sum := func(b []byte) string { return fmt.Sprint(crc32.ChecksumIEEE(b)) }
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		err    string
	}{
		{"with its length", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Header().Set("X-Amz-Crc32", sum(body))
			w.Write(body)
		}, ""},
		{"chunked", func(w http.ResponseWriter, _ *http.Request) {
			w.Write(body[:10])
			w.(http.Flusher).Flush()
			w.Write(body[10:])
		}, ""},
		{"compressed although not asked for", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("X-Amz-Crc32", sum(zipped.Bytes()))
			w.Write(zipped.Bytes())
		}, ""},
		{"damaged", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Crc32", sum(body))
			w.Write(bytes.ToUpper(body))
		}, "checksum"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Write(body[:50])
		}, "unexpected EOF"},
		{"far too long", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000000")
			w.Write(body)
		}, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := client(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Amz-Target") != "DynamoDBStreams_20120810.GetRecords" || r.Header.Get("Authorization") == "" {
					t.Errorf("not a signed GetRecords call: %v", r.Header)
				}
				if e := r.Header.Get("Accept-Encoding"); e != "identity" {
					t.Errorf("Accept-Encoding is %q", e)
				}
				c.answer(w, r)
			}).GetRecords(t.Context(), "it", 10)
			if c.err == "" && (err != nil || !bytes.Equal(got, body)) {
				t.Errorf("error %v, %d bytes, want the %d sent", err, len(got), len(body))
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

// Errors come as the SDK's types, and the call is made once.
func TestGetRecordsErrors(t *testing.T) {
	for _, c := range []struct {
		code   string
		status int
		is     func(error) bool
	}{
		{"ExpiredIteratorException", 400, func(err error) bool { var e *types.ExpiredIteratorException; return errors.As(err, &e) }},
		{"TrimmedDataAccessException", 400, func(err error) bool { var e *types.TrimmedDataAccessException; return errors.As(err, &e) }},
		{"ResourceNotFoundException", 400, func(err error) bool { var e *types.ResourceNotFoundException; return errors.As(err, &e) }},
		{"LimitExceededException", 400, func(err error) bool { var e *types.LimitExceededException; return errors.As(err, &e) }},
		{"InternalServerError", 500, func(err error) bool { var e *types.InternalServerError; return errors.As(err, &e) }},
		{"AccessDeniedException", 400, func(err error) bool {
			var e smithy.APIError
			return errors.As(err, &e) && e.ErrorCode() == "AccessDeniedException"
		}},
	} {
		t.Run(c.code, func(t *testing.T) {
			calls := 0
			_, err := client(t, func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.WriteHeader(c.status)
				fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"m"}`, c.code)
			}).GetRecords(t.Context(), "it", 0)
			if !c.is(err) {
				t.Errorf("%T %v", err, err)
			}
			if calls != 1 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}
