//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/bench/local"
)

const (
	patience  = time.Minute // for one record
	drainTime = 5 * time.Minute
)

// child is one of the programs, running.
type child struct {
	*local.Process
	name  string
	began time.Time
	lines chan tell.Line // closed when it ends
}

// start runs a program until stop or Kill, or until it ends.
func (b *bench) start(ctx context.Context, name string, env, args []string) (*child, error) {
	c := &child{name: name, began: time.Now(), lines: make(chan tell.Line, 1<<16)}
	cmd := exec.CommandContext(ctx, b.path(name), args...)
	cmd.Env = append(b.env[:len(b.env):len(b.env)], env...)
	cmd.Dir = b.dir
	var err error
	c.Process, err = local.Start(name, cmd, func(out io.Reader) {
		defer close(c.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var l tell.Line
			if json.Unmarshal(lines.Bytes(), &l) == nil {
				c.lines <- l
			}
		}
	}, nil)
	return c, err
}

// daemon starts the daemon on tables, with a metrics address of its own.
func (b *bench) daemon(ctx context.Context, state, start, env string, tables ...string) (*child, error) {
	args := []string{"--state", b.path(state), "--listen", "127.0.0.1:0", "--log-format", "json", "--table", strings.Join(tables, ",")}
	if start != "" {
		args = append(args, "--start", start)
	}
	return b.start(ctx, "daemon", []string{env}, args)
}

// next returns what the program reports next.
func (c *child) next(ctx context.Context, within time.Duration) (tell.Line, error) {
	select {
	case l, ok := <-c.lines:
		if !ok {
			return l, c.Failure(errors.New("it ended by itself"))
		}
		return l, nil
	case <-time.After(within):
		return tell.Line{}, c.Failure(fmt.Errorf("no report within %v", within))
	case <-ctx.Done():
		return tell.Line{}, context.Cause(ctx)
	}
}

// stop ends a daemon in order, or waits for the end of another program.
func (c *child) stop() error {
	if c.name == "daemon" {
		return c.Stop()
	}
	return c.Wait()
}
