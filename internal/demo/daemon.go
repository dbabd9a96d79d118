package demo

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"time"

	"github.com/sluicehq/sluice/bench/local"
)

// handled is what the daemon logs about each call of a route at level debug.
type handled struct {
	Msg      string        `json:"msg"`
	Sequence string        `json:"sequence"`
	Route    string        `json:"route"`
	Result   string        `json:"result"`
	Reason   string        `json:"error"`
	Took     time.Duration `json:"took"`
}

// daemon is the running program of the example.
type daemon struct {
	*local.Process
	handled chan handled
}

func startDaemon(path string, args, env []string) (*daemon, error) {
	d := &daemon{handled: make(chan handled, 64)}
	cmd := exec.Command(path, args...)
	cmd.Env = env
	var err error
	d.Process, err = local.Start("the daemon", cmd, nil, func(line []byte) {
		var h handled
		// A new search of manhunt has two routes: the demo shows it once.
		if json.Unmarshal(line, &h) == nil && h.Msg == "handled" && h.Route != "note malformed methods" {
			select {
			case d.handled <- h:
			default: // nobody reads any more
			}
		}
	})
	return d, err
}

// next returns what the daemon handled next.
func (d *daemon) next(ctx context.Context) (handled, error) {
	select {
	case h := <-d.handled:
		return h, nil
	case <-d.Ended():
		return handled{}, d.Failure(errors.New("it ended by itself"))
	case <-ctx.Done():
		return handled{}, d.Failure(context.Cause(ctx))
	}
}
