package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/letters"
)

// letterClient asks for dead letters as a daemon serves them.
type letterClient struct {
	base  string
	token daemonToken
	state string // absolute path of the state file that is meant; "" is whichever the daemon holds
	app   string // application that is meant; "" is the daemon's
	http  *http.Client
	down  string // what to do when the daemon stands still
	of    string // application that the last answer was of
}

// ask makes a request; the body of a good answer is the caller's to close.
func (c *letterClient) ask(ctx context.Context, method, path string, q url.Values) (io.ReadCloser, error) {
	u := strings.TrimSuffix(c.base, "/") + path
	if len(q) > 0 {
		u += "?" + q.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, u, nil)
	if err != nil {
		return nil, usage("--daemon: %w", err)
	}
	if c.state != "" {
		r.Header.Set(daemon.StateHeader, c.state)
	}
	if c.app != "" {
		r.Header.Set(daemon.ApplicationHeader, c.app)
	}
	if c.token.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token.token)
	}
	resp, err := c.http.Do(r)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("nobody listens at %s: name the address that the daemon logs by --daemon, or, when it stands still, %s", c.base, c.down)
	case err != nil:
		return nil, fmt.Errorf("the daemon at %s cannot be asked: %w: name the address that it logs by --daemon", c.base, err)
	case resp.StatusCode == http.StatusOK:
		c.of = resp.Header.Get(daemon.ApplicationHeader)
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10))
	problem := strings.TrimSpace(string(text))
	if resp.StatusCode == http.StatusMisdirectedRequest {
		problem = fmt.Sprintf("%s: %s; name the address that the other one logs by --daemon or $%s, or, to ask this one, its own by --application or --config", c.base, problem, daemonEnv)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		problem = fmt.Sprintf("the daemon at %s wants its token: %s", c.base, c.token.refused)
	}
	if to := resp.Header.Get("Location"); to != "" {
		problem = fmt.Sprintf("the program at %s sends on to %s: name the daemon's own address by --daemon", c.base, to)
	}
	if problem == "404 page not found" {
		problem += ": an older daemon, or another program?"
	}
	if rest, ok := strings.CutPrefix(problem, deadletter.ErrNotFound.Error()); ok && resp.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%w%s", deadletter.ErrNotFound, rest)
	}
	if resp.StatusCode == http.StatusConflict {
		return nil, fmt.Errorf("%w: %s", errAmbiguous, problem)
	}
	return nil, errors.New(problem)
}

func (c *letterClient) get(ctx context.Context, method, path string, q url.Values, into any) error {
	body, err := c.ask(ctx, method, path, q)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("%s %s: the answer cannot be read: %w", method, path, err)
	}
	return nil
}

// list returns up to limit entries behind after.
func (c *letterClient) list(ctx context.Context, f deadletter.Filter, after string, limit int) (all daemon.DeadLetterPage, err error) {
	const page = 1000
	all.DeadLetters = []letters.Outline{}
	for limit > 0 {
		q := letters.Query(f)
		q.Set("limit", strconv.Itoa(min(limit, page)))
		if after != "" {
			q.Set("after", after)
		}
		var p daemon.DeadLetterPage
		if err := c.get(ctx, "GET", "/deadletters", q, &p); err != nil {
			return all, err
		}
		all.DeadLetters = append(all.DeadLetters, p.DeadLetters...)
		all.Next, after, limit = p.Next, p.Next, limit-len(p.DeadLetters)
		if p.Unreadable != "" && !strings.Contains(all.Unreadable, p.Unreadable) {
			all.Unreadable = strings.TrimPrefix(all.Unreadable+"\n"+p.Unreadable, "\n")
		}
		if p.Next == "" {
			break
		}
	}
	return all, nil
}

func (c *letterClient) counts(ctx context.Context) (counts daemon.DeadLetterCounts, err error) {
	err = c.get(ctx, "GET", "/deadletters/counts", nil, &counts)
	return counts, err
}

func (c *letterClient) show(ctx context.Context, id string, payload bool) (o letters.Outline, err error) {
	q := url.Values{}
	if payload {
		q.Set("payload", "1")
	}
	err = c.get(ctx, "GET", "/deadletters/"+url.PathEscape(id), q, &o)
	return o, err
}

// there returns the whole ids of letters given by a part of their ids, before any
// changes: once a letter is deleted, the part could match another. It omits
// missing and ambiguous ids, and reports them in gone.
func (c *letterClient) there(ctx context.Context, ids []string) (there []string, gone error) {
	for _, id := range ids {
		switch o, err := c.show(ctx, id, false); {
		case errors.Is(err, deadletter.ErrNotFound), errors.Is(err, errAmbiguous):
			gone = errors.Join(gone, err)
		case err != nil: // an unreadable letter exists
			there = append(there, id)
		case !slices.Contains(there, o.ID):
			there = append(there, o.ID)
		}
	}
	return there, gone
}

// errAmbiguous says that several letters are named alike.
var errAmbiguous = errors.New("ambiguous id")

// redrive redrives one entry, or with an empty id all that f chooses.
func (c *letterClient) redrive(ctx context.Context, id string, f deadletter.Filter, how deadletter.How) (report deadletter.Report, err error) {
	path, q := "/deadletters/redrive", letters.Query(f)
	if id != "" {
		path, q = "/deadletters/"+url.PathEscape(id)+"/redrive", url.Values{}
	}
	for name, values := range map[string][]string{"allow": how.Allow, "unsigned": how.Unsigned} {
		if len(values) > 0 {
			q[name] = values
		}
	}
	for name, on := range map[string]bool{"dryRun": how.DryRun, "force": how.Force, "earlier": how.Earlier && id != ""} {
		if on {
			q.Set(name, "1")
		}
	}
	body, err := c.ask(ctx, "POST", path, q)
	if err != nil {
		return report, err
	}
	defer body.Close()
	for lines := json.NewDecoder(body); ; {
		var l daemon.DeadLetterLine
		if err := lines.Decode(&l); err != nil {
			return report, fmt.Errorf("the redrive was cut off, and what it had not done is still parked: %w", err)
		}
		if l.Report != nil {
			if l.Fault != "" {
				err = errors.New(l.Fault)
			}
			return *l.Report, err
		}
		if l.Outcome != nil {
			how.Told(*l.Outcome)
		}
	}
}

// remove deletes one entry, or with an empty id all that f chooses.
func (c *letterClient) remove(ctx context.Context, id string, f deadletter.Filter, dryRun bool) (d daemon.DeadLetterDeletion, err error) {
	if id != "" {
		err = c.get(ctx, "DELETE", "/deadletters/"+url.PathEscape(id), nil, &d)
		return d, err
	}
	q := letters.Query(f)
	q.Set("all", "1") // that all are meant was asked before
	if dryRun {
		q.Set("dryRun", "1")
	}
	err = c.get(ctx, "DELETE", "/deadletters", q, &d)
	return d, err
}
