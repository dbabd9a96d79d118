package streamtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/middleware"
)

// Region and account of every table of a [Service].
const (
	serviceRegion  = "us-east-1"
	serviceAccount = "123456789012"
)

// Service is an in-process fake of the DynamoDB Streams API: ListStreams,
// DescribeStream, GetShardIterator and GetRecords, and DynamoDB's DescribeTable.
// The methods of [Table] write its tables.
//
// Its clock is the time of the process plus [Service.Advance]. In a bubble of
// testing/synctest that time is virtual. Make a Service in the bubble that uses
// it.
//
// All methods are safe for concurrent use. An operation that DynamoDB would
// refuse, such as an item without its key, fails the test by t.Fatal. That ends
// the calling goroutine. So let other goroutines than the test's report their end
// by a defer.
type Service struct {
	failer

	mu          sync.Mutex
	offset      time.Duration // of the clock
	limits      Limits
	tables      map[string]*Table
	streams     []*stream // by creation, including those of deleted tables
	byARN       map[string]*stream
	generations map[string]int // of streams, by table
	calls       calls
	faults      []*scripted
	chaos       dice

	ended   bool
	pending []*context.CancelCauseFunc // of waiting calls
	server  *http.Server
	url     string
	serving sync.WaitGroup
}

// NewService returns a service without tables. It ends with the test.
//
// Without a test, in an Example or a program, t is nil: then mistakes panic and
// [Service.Close] ends it.
func NewService(t testing.TB) *Service {
	s := &Service{
		failer: failer{t, "streamtest: "}, limits: Limits{}.withDefaults(),
		tables: make(map[string]*Table), byARN: make(map[string]*stream), generations: make(map[string]int),
	}
	if t != nil {
		t.Cleanup(s.Close)
	}
	return s
}

func (s *Service) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Close ends the waiting calls and refuses all others. The end of the test calls
// it.
func (s *Service) Close() {
	s.mu.Lock()
	s.ended = true
	for _, end := range s.pending {
		(*end)(errEnded)
	}
	server := s.server
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		server.Close()
	}
	s.serving.Wait()
}

// Config returns the configuration for SDK clients and poller.New. It reaches the
// service in memory: HTTP without a socket, which works in a bubble of
// testing/synctest and leaves no goroutine behind. Requests are not signed.
func (s *Service) Config() aws.Config {
	return aws.Config{
		Region:       serviceRegion,
		Credentials:  credentials.NewStaticCredentialsProvider("streamtest", "streamtest", ""),
		BaseEndpoint: aws.String("http://streamtest.invalid"),
		HTTPClient:   &http.Client{Transport: transport{s}},
		APIOptions:   []func(*middleware.Stack) error{unsigned},
	}
}

// unsigned leaves out steps that the service does not need, such as the signature: a
// quarter of the SDK's CPU time.
func unsigned(s *middleware.Stack) error {
	s.Build.Clear()
	for _, id := range s.Finalize.List() {
		if slices.Contains([]string{"Retry", "ResolveAuthScheme", "ResolveEndpointV2"}, id) {
			continue
		}
		if _, err := s.Finalize.Remove(id); err != nil {
			return err
		}
	}
	return nil
}

// URL returns the service's endpoint on a loopback port, and starts serving at the
// first call. A program in another process can use it with any credentials. Do not
// use sockets in a bubble of testing/synctest.
func (s *Service) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.url == "" && !s.ended {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.fatalf("listen: %v", err)
		}
		server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
		s.url, s.server = "http://"+l.Addr().String(), server
		s.serving.Go(func() { _ = server.Serve(l) }) // until Close
	}
	return s.url
}

// Now returns the time by the service's clock.
func (s *Service) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

func (s *Service) now() time.Time { return time.Now().Add(s.offset) }

// Advance moves the service's clock on by d: iterators expire, records are
// trimmed, and the Date of responses follows. The caller's own clock does not
// change.
func (s *Service) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d < 0 {
		s.fatalf("Advance(%v): the clock does not go back", d)
	}
	s.offset += d
}

// SetLimits replaces the limits of the service.
func (s *Service) SetLimits(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := l.validate(); err != nil {
		s.fatalf("SetLimits: %v", err)
	}
	s.limits = l.withDefaults()
}

// DeleteTable deletes a table and its items without records. Its stream closes and
// stays readable for the retention.
func (s *Service) DeleteTable(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[name]
	if t == nil {
		s.fatalf("DeleteTable: there is no table %q", name)
	}
	if t.stream != nil && t.stream.enabled() {
		t.stream.close(s.now(), s.limits.Retention)
	}
	t.items, t.deleted = nil, true
	delete(s.tables, name)
}

// failer fails a test for a mistake in its use of this package. Without a test it panics.
type failer struct {
	t      testing.TB
	prefix string
}

func (f failer) fatalf(format string, args ...any) {
	msg := f.prefix + fmt.Sprintf(format, args...)
	if f.t == nil {
		panic(msg)
	}
	f.t.Helper()
	f.t.Fatal(msg)
}
