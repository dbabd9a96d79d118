//go:build integration && proof

package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
)

// The whole suite, on local servers.
func TestProofSuite(t *testing.T) {
	localtest.OpenSearchURL(t)
	w := world{env: os.Getenv, environ: os.Environ(), out: t.Output(), root: "../../..", jobs: findJobs, runJobs: runJobs}
	w.removing = func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }
	if err := w.main(t.Context(), options{local: true, timeout: 12 * time.Hour}); err != nil {
		t.Error(err)
	}
}
