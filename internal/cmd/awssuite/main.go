// Command awssuite runs the tests that need servers against an account of AWS:
// the conformance suites, sources, sinks, handlers, commands, and the examples.
//
//	awssuite --prefix sluice-test             # says what it would do, and asks
//	awssuite --prefix sluice-test --cleanup   # removes what a killed run has left
//	withstack --opensearch awssuite --local   # the same tests, on local servers
//
// The tests are those of make test. They find a [gateway] where they would find
// the local servers. See docs/testing.md.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/sluicehq/sluice/internal/localstack"
)

type options struct {
	prefix     string
	engine     string
	opensearch string
	pkg, run   string
	timeout    time.Duration
	yes        bool
	local      bool
	cleanup    bool
}

// world is what the command meets.
type world struct {
	env     func(string) string
	environ []string
	in      io.Reader // nil when nobody can be asked
	out     io.Writer
	root    string
	open    func(context.Context) (*account, error)
	jobs    func(root string, pkg, run *regexp.Regexp) ([]job, error)
	runJobs func(ctx context.Context, root string, all []job, env []string, n int, out io.Writer) []string
	// removing is what ends the removal: a second Ctrl-C.
	removing func() (context.Context, context.CancelFunc)
}

func main() {
	var o options
	flag.StringVar(&o.prefix, "prefix", "", "what every name begins with")
	flag.StringVar(&o.engine, "engine", defaultEngine, "version of the domain that is made")
	flag.StringVar(&o.opensearch, "opensearch", "", "URL of a domain that is there, without indices, in place of one that is made")
	flag.StringVar(&o.pkg, "pkg", "", "packages, a regular expression (default all)")
	flag.StringVar(&o.run, "run", "", "tests, a regular expression (default all)")
	flag.DurationVar(&o.timeout, "timeout", 3*time.Hour, "after which the run ends")
	flag.BoolVar(&o.yes, "yes", false, "do not ask")
	flag.BoolVar(&o.local, "local", false, "use the servers of withstack")
	flag.BoolVar(&o.cleanup, "cleanup", false, "remove what a killed run has left")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	w := world{env: os.Getenv, environ: os.Environ(), out: os.Stdout, root: ".", open: openAccount, jobs: findJobs, runJobs: runJobs}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		w.in = os.Stdin
	}
	w.removing = func() (context.Context, context.CancelFunc) {
		stop() // the next signal is for the removal
		return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	}
	if err := w.main(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "awssuite:", err)
		os.Exit(1)
	}
}

func (w *world) main(ctx context.Context, o options) error {
	if o.local && o.prefix == "" {
		o.prefix = "local"
	}
	if err := checkPrefix(o.prefix); err != nil {
		return err
	}
	if o.opensearch != "" && !regexp.MustCompile(`^https?://[^/]+/?$`).MatchString(o.opensearch) {
		return fmt.Errorf("--opensearch %s: want a URL such as https://search-….es.amazonaws.com", o.opensearch)
	}
	var a *account
	var err error
	if o.local {
		o.opensearch = w.env(localstack.EnvOpenSearch)
		a, err = openLocal(w.env)
	} else {
		a, err = w.open(ctx)
	}
	if err != nil {
		return err
	}
	if o.cleanup {
		return w.cleanup(ctx, o, a)
	}
	return w.suite(ctx, o, a)
}

// suite says what it will do, asks, and does it.
func (w *world) suite(ctx context.Context, o options, a *account) error {
	pkg, err1 := regexp.Compile(o.pkg)
	run, err2 := regexp.Compile(o.run)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	all, err := w.jobs(w.root, pkg, run)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no test with servers: PKG %q, RUN %q; PKG=./sinks/sqs is a package with some", o.pkg, o.run)
	}
	search := slices.ContainsFunc(all, job.searches)
	if a.local && search && o.opensearch == "" {
		return fmt.Errorf("--local: %s is not set; run make aws LOCAL=1", localstack.EnvOpenSearch)
	}
	there, err := a.named(ctx, o.prefix)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return fmt.Errorf("%v is there already, %d in all that begin with %s-: take another prefix, or remove what a killed run has left: make aws CLEANUP=1 PREFIX=%s", there[0], len(there), o.prefix, o.prefix)
	}
	if o.opensearch != "" && search {
		if err := a.noIndices(ctx, o.opensearch); err != nil {
			return err
		}
	}
	fmt.Fprint(w.out, plan(o, a, search))
	if !a.local && !o.yes {
		if ok, err := w.ask(ctx, "Create this, and run?"); !ok {
			return err
		}
	}
	return w.run(ctx, o, a, all, search)
}

// run creates the domain, runs the tests, and removes what they made, whatever
// has happened.
func (w *world) run(ctx context.Context, o options, a *account, all []job, search bool) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("it took longer than %v", o.timeout))
	defer cancel()
	runID := time.Now().UTC().Format("20060102T150405Z-") + strings.ToLower(rand.Text()[:6])
	g := newGateway(a, o.prefix, runID)
	begin := time.Now()
	var made []resource
	defer func() {
		g.close()
		made = append(made, g.created()...)
		removing, done := w.removing()
		defer done()
		err = errors.Join(err, w.remove(removing, o, a, made, runID))
		fmt.Fprintf(w.out, "%s, in %v\n", g.used(), time.Since(begin).Round(time.Second))
	}()

	first := slices.DeleteFunc(slices.Clone(all), job.searches)
	second := slices.DeleteFunc(slices.Clone(all), func(j job) bool { return !j.search })
	if search && o.opensearch == "" {
		made = append(made, resource{"domain", domainName(o.prefix)})
		if err := a.createDomain(ctx, domainName(o.prefix), o.engine, runID); err != nil {
			return fmt.Errorf("domain %s: %w", domainName(o.prefix), err)
		}
		fmt.Fprintf(w.out, "Domain %s is being made. The tests that need none run meanwhile.\n", domainName(o.prefix))
	}
	env := testEnv(w.environ, g)
	failed := w.runJobs(ctx, w.root, first, env, parallel(a), w.out)
	if search && ctx.Err() == nil {
		url := o.opensearch
		if url == "" {
			if url, err = a.domainReady(ctx, domainName(o.prefix)); err != nil {
				return err
			}
			fmt.Fprintf(w.out, "Domain %s is there, after %v.\n", domainName(o.prefix), time.Since(begin).Round(time.Second))
		}
		g.search.Store(url)
		for i := range second {
			if second[i].pkg == directPkg {
				second[i].env = directEnv(w.environ, a, url)
			}
		}
		failed = append(failed, w.runJobs(ctx, w.root, second, env, parallel(a), w.out)...)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("ended early: %w", context.Cause(ctx))
	case len(failed) > 0:
		return fmt.Errorf("%d of %d packages failed: %s", len(failed), len(all), strings.Join(failed, " "))
	}
	fmt.Fprintf(w.out, "%d of %[1]d packages passed.\n", len(all))
	return nil
}

// remove deletes what the run made, and says what could not be removed.
func (w *world) remove(ctx context.Context, o options, a *account, made []resource, run string) error {
	if len(made) > 0 {
		fmt.Fprintf(w.out, "Removing %d. A domain may have to be finished first, which takes up to half an hour. Ctrl-C stops this, too.\n", len(made))
	}
	if err := a.remove(ctx, made, run); err != nil {
		return fmt.Errorf("%w\nnot all was removed: make aws CLEANUP=1 PREFIX=%s", err, o.prefix)
	}
	fmt.Fprintln(w.out, "Nothing is left of what the suite made.")
	return nil
}

// cleanup removes what has the suite's tag and the prefix, after it has said what
// that is and asked.
func (w *world) cleanup(ctx context.Context, o options, a *account) error {
	there, err := a.named(ctx, o.prefix)
	if err != nil {
		return err
	}
	ours, others, err := a.owned(ctx, there)
	if err != nil {
		return err
	}
	for _, r := range others {
		fmt.Fprintf(w.out, "  %s has no tag %s: it is left alone\n", r, tagKey)
	}
	if len(ours) == 0 {
		fmt.Fprintf(w.out, "The suite has left nothing that begins with %s-.\n", o.prefix)
		return nil
	}
	for _, r := range ours {
		fmt.Fprintf(w.out, "  %s\n", r)
	}
	if !o.yes {
		if ok, err := w.ask(ctx, fmt.Sprintf("Remove these %d?", len(ours))); !ok {
			return err
		}
	}
	if err := a.remove(ctx, ours, ""); err != nil {
		return err
	}
	fmt.Fprintf(w.out, "%d removed.\n", len(ours))
	return nil
}

// ask returns an error when there is nobody who could answer.
func (w *world) ask(ctx context.Context, question string) (bool, error) {
	if w.in == nil {
		return false, errors.New("nothing was done: there is no terminal to ask at; YES=1 says yes")
	}
	fmt.Fprintf(w.out, "\n%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() { // it ends with the program
		line, _ := bufio.NewReader(w.in).ReadString('\n') // no answer is a no
		answers <- line
	}()
	var answer string
	select {
	case answer = <-answers:
	case <-ctx.Done():
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a == "y" || a == "yes" {
		return true, nil
	}
	fmt.Fprintln(w.out, "Nothing was done.")
	return false, nil
}
