package localstack

import (
	"context"
	"errors"
)

// OpenSearch is a server of the caller's own, to be killed and started again.
// Its methods are for one goroutine at a time.
type OpenSearch struct {
	URL  string // the same after every start
	port int

	start   start
	run     string // folder of its log and documents
	options Options
	process *process // nil while it is not running
}

// StartOpenSearch starts an OpenSearch whose log and documents are in the folder
// run: version 3 when o.OpenSearch3 is set, else version 2. It reads no endpoint
// from the environment.
func StartOpenSearch(ctx context.Context, o Options, run string) (*OpenSearch, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	version := ownOpenSearch2
	if o.OpenSearch3 {
		version = ownOpenSearch3
	}
	st, err := prepare(ctx, o, version)
	if err != nil {
		return nil, err
	}
	p, err := launch(ctx, st, run, o.Timeout)
	if err != nil {
		return nil, err
	}
	return &OpenSearch{URL: p.endpoint, port: p.port, start: st, run: run, options: o, process: p}, nil
}

// Kill ends the server without a warning, as a crash does, and waits until it
// is gone. What it had not written is lost.
func (s *OpenSearch) Kill() {
	if s.process == nil {
		return
	}
	s.process.kill()
	<-s.process.done
	s.process = nil
}

// Start starts the server that was killed, on its folder and port, and returns
// when it answers and has its documents.
func (s *OpenSearch) Start(ctx context.Context) error {
	if s.process != nil {
		return errors.New("opensearch: it is running")
	}
	var err error
	s.process, err = onPort(func() (*process, error) { return launchOn(ctx, s.start, s.port, s.run, s.options.Timeout) })
	return err
}
