package localstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// The environment variables that hold the endpoints, such as
// http://127.0.0.1:8000. Start reads them; the integration tests too.
const (
	EnvDynamoDB = "SLUICE_TEST_DYNAMODB"
	EnvSQS      = "SLUICE_TEST_SQS"
)

// Options configure Start; the zero value is ready to use.
type Options struct {
	Dir     string        // cache folder (default: see the package comment)
	Timeout time.Duration // for one server to answer (default 60 s; a cold disk is slow)
	Log     io.Writer     // one line for what takes long, such as a fetch (default: none)
	NoSQS   bool          // no ElasticMQ
}

func (o Options) withDefaults() (Options, error) {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Dir == "" {
		dir, err := cacheDir()
		if err != nil {
			return o, err
		}
		o.Dir = dir
	}
	return o, nil
}

// Stack is a set of running servers.
type Stack struct {
	DynamoDB string // endpoint of tables and streams
	SQS      string // endpoint of queues; empty without ElasticMQ
	LogDir   string // where the servers' output is; empty when none was started

	processes []*process
}

// Start fetches what is missing, starts the servers that the environment does
// not name, and returns when they answer. When it fails, or ctx ends first,
// nothing is left running.
func Start(ctx context.Context, o Options) (*Stack, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Stack{DynamoDB: os.Getenv(EnvDynamoDB), SQS: os.Getenv(EnvSQS)}
	for _, want := range []struct {
		server   server
		endpoint *string
	}{
		{dynamoDB, &s.DynamoDB},
		{elasticMQ, &s.SQS},
	} {
		if *want.endpoint != "" || o.NoSQS && want.endpoint == &s.SQS {
			continue
		}
		if err := s.start(ctx, o, want.server, want.endpoint); err != nil {
			s.Stop()
			return nil, fmt.Errorf("local stack: %w", err)
		}
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, o Options, srv server, endpoint *string) error {
	java, err := findJava(ctx)
	if err != nil {
		return err
	}
	home, err := fetch(ctx, o, srv, mavenResolve)
	if err != nil {
		return err
	}
	if s.LogDir == "" {
		if s.LogDir, err = newLogDir(o.Dir); err != nil {
			return err
		}
	}
	p, err := launch(ctx, srv, java, home, s.LogDir, o.Timeout)
	if err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	*endpoint = p.endpoint
	return nil
}

// Stop ends the servers that Start started and waits until they are gone.
func (s *Stack) Stop() {
	for _, p := range s.processes {
		p.terminate()
	}
	for _, p := range s.processes {
		p.wait()
	}
	s.processes = nil
}

// Environ returns the variables that a program needs to reach the stack: the
// endpoints, a Region and credentials, which the servers do not check.
func (s *Stack) Environ() []string {
	return []string{
		EnvDynamoDB + "=" + s.DynamoDB,
		EnvSQS + "=" + s.SQS,
		"AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=local",
		"AWS_SECRET_ACCESS_KEY=local",
		"AWS_SESSION_TOKEN=",
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// Kept is how many runs' logs stay in the cache.
const keptLogs = 10

// newLogDir makes a folder for this run's logs and removes the oldest ones.
func newLogDir(cache string) (string, error) {
	root := filepath.Join(cache, "logs")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("log folder: %w", err)
	}
	// Names sort by time, so that ReadDir lists the oldest first. A run that is
	// still going keeps its open files even if its folder is removed.
	if runs, err := os.ReadDir(root); err == nil {
		for i := 0; i < len(runs)-keptLogs+1; i++ {
			os.RemoveAll(filepath.Join(root, runs[i].Name())) //nolint:errcheck // the next run tries again
		}
	}
	dir, err := os.MkdirTemp(root, time.Now().UTC().Format("20060102T150405.000Z-"))
	if err != nil {
		return "", fmt.Errorf("log folder: %w", err)
	}
	return dir, nil
}

// cacheDir returns .cache/local of the repository that the working directory
// is in, or else sluice/local in the user's cache directory.
func cacheDir() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "deploy", "local", "elasticmq", "pom.xml")); err == nil {
			return filepath.Join(dir, ".cache", "local"), nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("cache folder: %w", err)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	return filepath.Join(user, "sluice", "local"), nil
}
