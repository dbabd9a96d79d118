package browsertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/sluicehq/sluice/internal/localstack"
)

var axe = localstack.Package{
	Name: "axe-core", Version: "4.14.1",
	Integrity: "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
	Files:     []string{"axe.min.js"},
}

// Axe returns a check of the page that a tab shows by all rules of axe-core for
// accessibility. It returns a line for each breach. The script comes by DevTools, past
// the page's Content-Security-Policy.
func Axe(ctx context.Context) (check chromedp.Action[[]string], err error) {
	dir, err := localstack.FetchPackage(ctx, localstack.Options{Log: os.Stderr}, axe)
	if err != nil {
		return nil, err
	}
	script, err := os.ReadFile(filepath.Join(dir, "axe.min.js"))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, t *chromedp.Target) ([]string, error) {
		if there, err := chromedp.Evaluate[bool](`"axe" in window`)(ctx, t); err != nil {
			return nil, err
		} else if !there {
			if _, err := chromedp.Evaluate[chromedp.Void](string(script)+";undefined")(ctx, t); err != nil {
				return nil, fmt.Errorf("axe-core: %w", err)
			}
		}
		found, err := chromedp.Evaluate[string](`axe.run().then(r => r.violations.flatMap(v =>
			v.nodes.map(n => v.id + ": " + n.html.slice(0, 300) + " " + n.failureSummary.replace(/\s+/g, " "))).join("\n"))`, chromedp.EvalAwaitPromise)(ctx, t)
		return strings.FieldsFunc(found, func(r rune) bool { return r == '\n' }), err
	}, nil
}
