package localtest

import (
	"os"
	"testing"

	"github.com/sluicehq/sluice/internal/localstack"
)

// OpenSearch runs f as a subtest on each version of OpenSearch that `make test`
// started: 2 always, 3 where there is a Java for it. `make test` starts them
// when a test file of the packages that it tests names this function or
// OpenSearchURL.
func OpenSearch(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	url := OpenSearchURL(t)
	t.Run("opensearch2", func(t *testing.T) { f(t, url) })
	// withstack says on the terminal when there is none.
	if url := os.Getenv(localstack.EnvOpenSearch3); url != "" {
		t.Run("opensearch3", func(t *testing.T) { f(t, url) })
	}
}

// OpenSearchURL returns the address of OpenSearch 2, for tests that the version
// does not matter to. It is shared: make indices of your own, without replicas.
func OpenSearchURL(t testing.TB) string {
	t.Helper()
	return endpoint(t, localstack.EnvOpenSearch)
}

// Server is an OpenSearch of one test's own, which ends with the test.
type Server struct {
	*localstack.OpenSearch
	t testing.TB
}

// OwnOpenSearch starts an OpenSearch 2 in a folder of its own, for a test that
// kills it. It takes seconds, and half a gigabyte.
func OwnOpenSearch(t testing.TB) *Server {
	t.Helper()
	return ownServer(t, localstack.Options{})
}

// OwnOpenSearches runs f as a subtest with an OpenSearch of its own, for each of
// the versions that OpenSearch runs it on.
func OwnOpenSearches(t *testing.T, f func(t *testing.T, server *Server)) {
	t.Helper()
	t.Run("opensearch2", func(t *testing.T) { f(t, ownServer(t, localstack.Options{})) })
	if os.Getenv(localstack.EnvOpenSearch3) != "" {
		t.Run("opensearch3", func(t *testing.T) { f(t, ownServer(t, localstack.Options{OpenSearch3: true})) })
	}
}

func ownServer(t testing.TB, o localstack.Options) *Server {
	t.Helper()
	o.Log = os.Stderr
	own, err := localstack.StartOpenSearch(t.Context(), o, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Kill)
	return &Server{own, t}
}

// Start starts the server that was killed, on the same folder and port, and
// returns when it answers. To be called by the test's own goroutine.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.OpenSearch.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}
