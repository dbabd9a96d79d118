package localstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// The environment variables that hold the endpoints, such as
// http://127.0.0.1:8000. Start reads them; the integration tests too.
const (
	EnvDynamoDB    = "SLUICE_TEST_DYNAMODB"
	EnvSQS         = "SLUICE_TEST_SQS"
	EnvOpenSearch  = "SLUICE_TEST_OPENSEARCH"  // version 2
	EnvOpenSearch3 = "SLUICE_TEST_OPENSEARCH3" // version 3
)

// Options configure Start; the zero value is ready to use.
type Options struct {
	Dir         string        // cache folder (default: see the package comment)
	Timeout     time.Duration // for one server to answer (default 20 min; a cold disk and a busy machine are slow)
	Log         io.Writer     // one line for what takes long, such as a fetch (default: none)
	NoSQS       bool          // no ElasticMQ
	OpenSearch  bool          // OpenSearch 2, too
	Benchmark   bool          // servers with Java's second compiler: slower for ten seconds, then a third faster
	OpenSearch3 bool          // OpenSearch 3, too, if a Java for it exists; else Log reports it
}

func (o Options) withDefaults() (Options, error) {
	o.Timeout = cmp.Or(o.Timeout, 20*time.Minute)
	o.Log = cmp.Or(o.Log, io.Discard)
	if o.Dir == "" {
		dir, err := cacheDir()
		if err != nil {
			return o, err
		}
		o.Dir = dir
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil { // servers run in folders of their own
		return o, fmt.Errorf("cache folder: %w", err)
	}
	return o, nil
}

// Stack is a set of running servers.
type Stack struct {
	DynamoDB    string // endpoint of tables and streams
	SQS         string // endpoint of queues; empty without ElasticMQ
	OpenSearch  string // URL of OpenSearch 2; empty without it
	OpenSearch3 string // URL of OpenSearch 3; empty without it
	LogDir      string // of the servers' output; empty if none was started

	processes []*process
	unlock    func() // of LogDir; nil without one
}

// Start fetches missing servers, starts those without an endpoint in the
// environment concurrently, and returns when they respond. If it fails, or ctx
// ends first, it leaves nothing running.
func Start(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{
		DynamoDB: os.Getenv(EnvDynamoDB), SQS: os.Getenv(EnvSQS),
		OpenSearch: os.Getenv(EnvOpenSearch), OpenSearch3: os.Getenv(EnvOpenSearch3),
	}
	var starts []start
	for _, want := range []struct {
		server   server
		endpoint *string
		wanted   bool
	}{
		{dynamoDB, &s.DynamoDB, true},
		{elasticMQ, &s.SQS, !o.NoSQS},
		{openSearch2, &s.OpenSearch, o.OpenSearch},
		{openSearch3, &s.OpenSearch3, o.OpenSearch3},
	} {
		if *want.endpoint != "" || !want.wanted {
			continue
		}
		var err error
		if o, err = o.withDefaults(); err != nil { // only here: servers of the environment need no cache folder
			return nil, err
		}
		st, err := prepare(ctx, o, want.server)
		var missing *MissingToolError
		if want.endpoint == &s.OpenSearch3 && errors.As(err, &missing) && missing.Tool != maven {
			fmt.Fprintf(o.Log, "OpenSearch 3 is left out: %s was not found on PATH, by JAVA_HOME or in the usual folders\n", missing.Tool)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("local stack: %w", err)
		}
		st.endpoint = want.endpoint
		starts = append(starts, st)
	}
	if err := s.startAll(ctx, o, starts); err != nil {
		s.Stop()
		if ctx.Err() != nil {
			os.RemoveAll(s.LogDir) //nolint:errcheck // later runs remove old ones
		}
		return nil, fmt.Errorf("local stack: %w", err)
	}
	return s, nil
}

// start is a server that has all it needs.
type start struct {
	server     server
	java, home string
	options    []string // for java, before the server's
	endpoint   *string  // to be set
}

func prepare(ctx context.Context, o Options, srv server) (start, error) {
	java, err := searchJava(ctx, srv.java, javaHomes)
	if err != nil {
		return start{}, err
	}
	if _, err := exec.LookPath("mvn"); err != nil && !complete(o.home(srv.name, srv.pom)) {
		return start{}, &MissingToolError{Tool: maven}
	}
	st := start{server: srv, java: java}
	st.home, err = fetch(ctx, o, srv.name, srv.pom, func(ctx context.Context, dir string) error { return mavenResolve(ctx, srv.pom, dir) })
	if err == nil && srv.archive {
		st.options, err = archived(ctx, o, srv, java, st.home)
	}
	if !o.Benchmark { // less processor time for short runs and small heaps: a fifth in the tests of the sinks
		st.options = append(st.options, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
	}
	return st, err
}

// startAll adds the started servers to the stack's processes, even if another
// failed. The first failure ends the others.
func (s *Stack) startAll(ctx context.Context, o Options, starts []start) error {
	if len(starts) == 0 {
		return nil
	}
	var err error
	if s.LogDir, s.unlock, err = newLogDir(o.Dir); err != nil {
		return err
	}
	processes := make([]*process, len(starts))
	all, ctx := errgroup.WithContext(ctx)
	for i, st := range starts {
		all.Go(func() error {
			p, err := launch(ctx, st, s.LogDir, o.Timeout)
			if err == nil {
				processes[i], *st.endpoint = p, p.endpoint
			}
			return err
		})
	}
	err = all.Wait()
	s.processes = append(s.processes, slices.DeleteFunc(processes, func(p *process) bool { return p == nil })...)
	return err
}

// Watch waits for the end of ctx, and then returns nil; or for that of a server
// that Start started, and says which with the end of its log. The others run on.
func (s *Stack) Watch(ctx context.Context) error {
	all, watch := errgroup.WithContext(ctx)
	all.Go(func() error { <-watch.Done(); return nil }) // also without a process
	for _, p := range s.processes {
		all.Go(func() error {
			select {
			case <-p.done:
				return p.ended()
			case <-watch.Done():
				return nil
			}
		})
	}
	if err := all.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// Stop ends the servers that Start started and waits until they are gone.
func (s *Stack) Stop() {
	for _, p := range s.processes {
		p.terminate()
	}
	for _, p := range s.processes {
		p.wait()
		os.RemoveAll(p.data) //nolint:errcheck // it goes with the logs at the latest
	}
	s.processes = nil
	if s.unlock != nil {
		s.unlock()
		s.unlock = nil
	}
}

// Environ returns the variables that a program needs to reach the stack: the
// endpoints, a Region and credentials, which the servers do not check.
func (s *Stack) Environ() []string {
	return []string{
		EnvDynamoDB + "=" + s.DynamoDB,
		EnvSQS + "=" + s.SQS,
		EnvOpenSearch + "=" + s.OpenSearch,
		EnvOpenSearch3 + "=" + s.OpenSearch3,
		"AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=local",
		"AWS_SECRET_ACCESS_KEY=local",
		"AWS_SESSION_TOKEN=",
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// Kept is how many runs' logs stay in the cache.
const keptLogs = 10

// newLogDir makes a folder for this run's logs and data, locked until unlock or
// the end of the process, and removes the oldest ones of runs that are over.
func newLogDir(cache string) (dir string, unlock func(), err error) {
	root := filepath.Join(cache, "logs")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", nil, fmt.Errorf("log folder: %w", err)
	}
	// Names sort by time, so that ReadDir lists the oldest first.
	if runs, err := os.ReadDir(root); err == nil {
		for i := 0; i < len(runs)-keptLogs+1; i++ {
			removeEnded(filepath.Join(root, runs[i].Name()))
		}
	}
	if dir, err = os.MkdirTemp(root, time.Now().UTC().Format("20060102T150405.000Z-")); err != nil {
		return "", nil, fmt.Errorf("log folder: %w", err)
	}
	if unlock, err = lock(context.Background(), filepath.Join(dir, lockName)); err != nil {
		return "", nil, fmt.Errorf("log folder: %w", err)
	}
	return dir, unlock, nil
}

const lockName = "lock"

// removeEnded removes the folder of a run unless its servers have their data in
// it still.
func removeEnded(dir string) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no waiting
	unlock, err := lock(ctx, filepath.Join(dir, lockName))
	if err != nil {
		return
	}
	defer unlock()
	os.RemoveAll(dir) //nolint:errcheck // the next run tries again
}

// cacheDir is sluice/local in the user's cache directory: programs in the cache run, so
// that a folder which others can write to is none.
func cacheDir() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	return filepath.Join(user, "sluice", "local"), nil
}
