package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// startWithin is long: a busy machine starts programs slowly.
const startWithin = 5 * time.Minute

// Tab shows pages. Its methods are for one goroutine at a time.
type Tab struct {
	// Context is that of chromedp.Do and chromedp.Run.
	Context context.Context
	// Close closes the tab. That of the first tab ends the browser.
	Close func()

	mu       sync.Mutex
	problems []string
}

// Start starts a browser with a new profile, and returns its first tab. The browser
// ends with the tab, with ctx, or, on Linux, with this process.
func Start(ctx context.Context) (*Tab, error) {
	dir, err := os.MkdirTemp("", "browsertest")
	if err != nil {
		return nil, err
	}
	remove := func() { os.RemoveAll(dir) } //nolint:errcheck // it is in the folder for temporary files
	c, err := find(ctx, dir)
	if err != nil {
		remove()
		return nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(c.path), chromedp.Env(c.env...), chromedp.NoSandbox)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t, err := open(ctx)
	if err != nil {
		end()
		remove()
		return nil, fmt.Errorf("%s does not start: %w", c.path, err)
	}
	closeTab := t.Close
	t.Close = func() {
		closeTab()
		end()
		remove()
	}
	return t, nil
}

// Another opens another tab with the same cookies. Close it before the first one.
func (t *Tab) Another() (*Tab, error) { return open(t.Context) }

func open(ctx context.Context) (*Tab, error) {
	t := new(Tab)
	t.Context, t.Close = chromedp.NewContext(ctx, chromedp.WithListener(t.listen))
	late := time.AfterFunc(startWithin, t.Close) // no deadline of the context: it would be the tab's
	defer late.Stop()
	if err := chromedp.Do(t.Context); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Problems returns what no page may do: dialogs, scripts that fail or write to the
// console, and what the browser reports, such as a breach of the page's
// Content-Security-Policy. A status such as 404 is none.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.problems)
}

func (t *Tab) listen(event any) {
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		t.problem("dialog: " + e.Message)
		go t.closeDialog() // it stops the page, and this goroutine reads the answer
	case *runtime.EventExceptionThrown:
		t.problem(fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		t.problem(fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork {
			t.problem(fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	}
}

func (t *Tab) closeDialog() {
	target := chromedp.FromContext(t.Context).Target
	if _, err := cdp.Call(t.Context, target, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}); err != nil && !errors.Is(err, context.Canceled) {
		t.problem("the dialog cannot be closed: " + err.Error())
	}
}

func (t *Tab) problem(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, text)
}
