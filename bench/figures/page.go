//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/browsertest"
	"github.com/sluicehq/sluice/state/boltstate"
	"github.com/sluicehq/sluice/streamtest"
)

const (
	pageShards  = 1000
	pageLetters = 10_000
	pageToken   = "figures-of-the-page"
	pageRest    = 20 * time.Second // before memory and CPU time are looked at
)

// pageFigures looks with a browser at a daemon that has many shards and dead letters.
func (b *bench) pageFigures(ctx context.Context) error {
	if err := b.parkLetters(ctx); err != nil {
		return err
	}
	streams := streamtest.NewService(nil)
	defer streams.Close()
	streams.CreateTable("page", streamtest.TableOptions{Shards: pageShards})
	d, err := b.start(ctx, "daemon", []string{tell.EnvEach + "=1", access.TokenEnv + "=" + pageToken},
		[]string{"--state", b.path("page"), "--listen", "127.0.0.1:0", "--log-format", "json", "--table", "page", "--start", "TRIM_HORIZON", "--endpoint-dynamodb", streams.URL()})
	if err != nil {
		return err
	}
	defer d.Kill()
	address, err := d.Address(ctx, patience)
	if err != nil {
		return err
	}
	tab, err := browsertest.Start(ctx)
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := allShards(ctx, address); err != nil {
		return d.Failure(err)
	}
	alone, err := d.usage(ctx, address)
	if err != nil {
		return err
	}
	link, err := sessionLink(ctx, address)
	if err != nil {
		return d.Failure(err)
	}
	if _, err := chromedp.Run(tab.Context, chromedp.Steps(chromedp.Navigate("http://"+address+link),
		chromedp.Click(chromedp.CSS("form button")), chromedp.WaitVisible(chromedp.CSS("#verdict")))); err != nil {
		return d.Failure(err)
	}
	for _, path := range []string{"/page/letters", "/page/shards", "/"} { // the overview stays
		var paints []float64
		for range b.rounds {
			paint, err := chromedp.Run(tab.Context, firstPaint("http://"+address+path))
			if err != nil {
				return d.Failure(fmt.Errorf("%s: %w", path, err))
			}
			paints = append(paints, paint)
		}
		if b.logf("first paint of %s: %.0f ms", path, local.Median(paints)); path == "/" {
			fmt.Printf("cost page_first_paint_ms %.0f\n", local.Median(paints))
		}
	}
	viewed, err := d.usage(ctx, address)
	if err != nil {
		return err
	}
	fmt.Printf("cost page_daemon_mb %.1f\n", (viewed.memory-alone.memory)/1e6)
	fmt.Printf("cost page_daemon_cpu_percent %.1f\n", viewed.percent-alone.percent)
	b.logf("%d shards, %d dead letters: alone %.1f MB, %.1f %% of a processor; with a viewer %.1f MB, %.1f %%",
		pageShards, pageLetters, alone.memory/1e6, alone.percent, viewed.memory/1e6, viewed.percent)
	return d.stop()
}

// parkLetters fills a state file with dead letters.
func (b *bench) parkLetters(ctx context.Context) error {
	store, err := boltstate.Open(b.path("page"), boltstate.Options{})
	if err != nil {
		return err
	}
	box := deadletter.NewBox(store, "figures")
	var parking errgroup.Group
	parking.SetLimit(256) // share the disk's syncs
	for i := range pageLetters {
		parking.Go(func() error {
			rec := streamtest.Insert("page", map[string]any{"pk": strconv.Itoa(i), "entityType": "search", "note": strings.Repeat("x", 500)})
			rec.Sequence, rec.ShardID = sluice.Sequence(strconv.Itoa(100_000_000_000_000_000+i)), "shard"
			err := errors.New("refused by the sink")
			return box.Park(ctx, &rec, sluice.Failure{Route: "search", Attempts: 8, First: err, Last: err, FirstAt: time.Now(), LastAt: time.Now()})
		})
	}
	return errors.Join(parking.Wait(), store.Close())
}

// firstPaint opens a page and returns the milliseconds until it showed something.
func firstPaint(url string) chromedp.Action[float64] {
	return func(ctx context.Context, t *chromedp.Target) (float64, error) {
		if _, err := chromedp.Navigate(url)(ctx, t); err != nil {
			return 0, err
		}
		return chromedp.Evaluate[float64](`new Promise(done => new PerformanceObserver(all => done(all.getEntriesByName("first-contentful-paint")[0].startTime))
			.observe({type: "paint", buffered: true}))`, chromedp.EvalAwaitPromise)(ctx, t)
	}
}

// allShards waits until the daemon reads all shards.
func allShards(ctx context.Context, address string) error {
	for begin := time.Now(); ; {
		var st struct{ Tables []struct{ Reading int } }
		if err := asked(ctx, "GET", address, "/api/status", &st); err != nil {
			return err
		}
		if len(st.Tables) == 1 && st.Tables[0].Reading == pageShards {
			return nil
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("after %v it reads %+v shards, want %d", patience, st.Tables, pageShards)
		}
		if err := backoff.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// sessionLink makes a link as sluice open does.
func sessionLink(ctx context.Context, address string) (path string, err error) {
	var link access.Link
	err = asked(ctx, "POST", address, "/session", &link)
	return link.Path, err
}

func asked(ctx context.Context, method, address, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+pageToken)
	body, err := local.Do(r)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return json.Unmarshal(body, into)
}

// usage is the resident bytes of a program, and the share of a processor that it takes.
type usage struct{ memory, percent float64 }

func (c *child) usage(ctx context.Context, address string) (u usage, err error) {
	before, err := local.Metrics(ctx, address)
	if err != nil {
		return u, err
	}
	begin := time.Now()
	if err := backoff.Sleep(ctx, pageRest); err != nil {
		return u, err
	}
	after, err := local.Metrics(ctx, address)
	if err != nil {
		return u, err
	}
	const cpu = "process_cpu_seconds_total"
	u.percent = 100 * (after[cpu] - before[cpu]) / time.Since(begin).Seconds()
	u.memory, err = local.Memory(c.Pid())
	return u, err
}
