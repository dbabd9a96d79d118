//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/localstack"
)

const startTime = time.Minute

// daemon is the process that is looked at.
type daemon struct {
	*local.Process
	address string // of its metrics
}

func startDaemon(ctx context.Context, binary, dir string, stack *localstack.Stack) (*daemon, error) {
	cmd := exec.CommandContext(ctx, binary, "run", "--config", filepath.Join(dir, "sluice.yaml"), "--state", filepath.Join(dir, "soak.db"), "--listen", "127.0.0.1:0", "--log-format", "json")
	cmd.Env = append(stack.Environ(), "HOME="+dir, "PATH="+os.Getenv("PATH"),
		"SLUICE_ENDPOINT_DYNAMODB="+stack.DynamoDB, "SLUICE_ENDPOINT_SQS="+stack.SQS, "SLUICE_ENDPOINT_OPENSEARCH="+stack.OpenSearch)
	p, err := local.Start("the daemon", cmd, nil, nil)
	if err != nil {
		return nil, err
	}
	address, err := p.Address(ctx, startTime)
	if err != nil {
		p.Kill()
		return nil, err
	}
	return &daemon{p, address}, nil
}
