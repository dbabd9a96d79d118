package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/job"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/letterqueue"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/state/boltstate"
)

const (
	stateEnv       = "SLUICE_STATE"
	applicationEnv = "SLUICE_APPLICATION"
	daemonEnv      = "SLUICE_DAEMON"
	defaultDaemon  = "http://127.0.0.1:9464"
)

// letterPlace is where the dead letters are that a command is about.
type letterPlace struct {
	c *cli

	daemon, tokenFile, state, file, queue, keyFile, application string

	live    bool // only a running daemon is of use
	routes  bool // the command is about routes, not about dead letters
	changes bool // the command changes dead letters

	flags *pflag.FlagSet // that have these
}

func (p *letterPlace) addFlags(fs *pflag.FlagSet) {
	p.addDaemonFlag(fs)
	fs.StringVar(&p.state, "state", "", stateUsage)
	fs.StringVar(&p.file, "file", "", "dead-letter `file` of your own program")
	fs.StringVar(&p.queue, "queue", "", "SQS `queue` of a Lambda function's dead letters")
	fs.StringVar(&p.keyFile, "letter-key-file", "", "`file` of the signing keys ($"+access.LetterKeyFileEnv+", or the keys in $"+access.LetterKeyEnv+"; default: deadLetter.keyFile)")
	p.addApplicationFlag(fs)
}

// addLiveFlags are those of a command that only a running daemon is of use to.
func (p *letterPlace) addLiveFlags(fs *pflag.FlagSet) {
	p.addDaemonFlag(fs)
	p.addApplicationFlag(fs)
}

func (p *letterPlace) addDaemonFlag(fs *pflag.FlagSet) {
	fs.SortFlags = false
	p.flags = fs
	fs.StringVar(&p.daemon, "daemon", "", "`URL` of the daemon ($"+daemonEnv+"; default: the state file's; needed with a table)")
	fs.StringVar(&p.tokenFile, "token-file", "", "`file` of the daemon's token ($"+access.TokenFileEnv+", or the token in $"+access.TokenEnv+"; default: beside the state file)")
}

func (p *letterPlace) addApplicationFlag(fs *pflag.FlagSet) {
	fs.StringVar(&p.application, "application", "", "`name` of the application ($"+applicationEnv+"; default: the configuration's, or sluice)")
}

// given are the flags of the command line that say where the letters are.
func (p *letterPlace) given() string {
	text := ""
	for _, name := range []string{"daemon", "token-file", "state", "file", "queue", "letter-key-file", "application"} {
		if value := p.flags.Lookup(name).Value.String(); value != "" {
			text += " --" + name + " " + shellQuoted(value)
		}
	}
	return text
}

// lettersOpen is the dead letters of one place, behind a daemon's responses.
type lettersOpen struct {
	api   *letterClient
	where string // for people
	parks bool   // a running daemon parks meanwhile, or several that share a table
	part  string // why these may not be all that there are; "" when they are
	close func() error
}

// open finds the place. redriving says that routes are needed, where no daemon
// has them.
func (p *letterPlace) open(ctx context.Context, redriving bool) (*lettersOpen, error) {
	if err := p.notEmpty(); err != nil {
		return nil, err
	}
	named := 0
	for _, place := range []string{p.daemon, p.state, p.file, p.queue} {
		if place != "" {
			named++
		}
	}
	if named > 1 {
		return nil, usage("name one of --daemon, --state, --file and --queue")
	}
	cfg, err := p.c.loadMaybe()
	switch {
	case err == nil:
	case named == 0:
		o, _, err := p.find(ctx, nil, err)
		return o, err
	case redriving && p.daemon == "":
		return nil, err
	case p.daemon == "" && p.application == "" && p.c.env(applicationEnv) == "":
		return nil, fmt.Errorf("%w; to do without the configuration, name the application by --application", err)
	}
	switch {
	case p.file != "":
		if _, err := os.Stat(p.file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--file: there is no file %s: it is the one that a program opens by deadletter.OpenFile; a daemon's state file is --state", p.file)
		}
		f, err := deadletter.OpenFile(p.file)
		if err != nil {
			return nil, err
		}
		return p.inside(ctx, redriving, letters.NewBox(f, p.name(cfg)), "the file "+p.file, f.Close)
	case p.queue != "":
		keys, err := p.keys(cfg)
		if err != nil {
			return nil, err
		}
		services, _, err := p.c.accounts(ctx, cfg)
		if err != nil {
			return nil, err
		}
		q, err := letterqueue.Receive(ctx, services("sqs"), p.queue, p.name(cfg), keys, p.c.stderr)
		if err != nil {
			return nil, err
		}
		o, err := p.inside(ctx, redriving, letters.NewBox(q, p.name(cfg)), "the queue "+p.queue, q.Close)
		if err == nil {
			o.part = q.Part
		}
		return o, err
	}
	o, store, err := p.reach(ctx, cfg, time.Second)
	if o != nil || err != nil {
		return o, err
	}
	box := letters.NewBox(store, p.name(cfg))
	if several, ok := store.(job.Store); ok {
		box.Exclusive(job.Exclusive(several, p.name(cfg), job.Redrive))
	}
	o, err = p.inside(ctx, redriving, box, "the "+statestore.Describe(p.c.statePath(p.state, cfg)), store.Close)
	if err != nil {
		return nil, err
	}
	_, o.parks = statestore.Table(p.c.statePath(p.state, cfg))
	if err := p.warnOfApplication(ctx, store, p.name(cfg), o.where); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return o, nil
}

// notEmpty refuses an empty flag, which must not choose another place than was meant.
func (p *letterPlace) notEmpty() error {
	for _, name := range []string{"daemon", "state", "file", "queue", "application"} {
		if f := p.flags.Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return usage("--%s: it is empty: is a variable not set?", name)
		}
	}
	return nil
}

// find is reach. If the file is invalid a daemon is found all the same: it may run by
// an earlier one, and who repairs it wants to see.
func (p *letterPlace) find(ctx context.Context, cfg *config.Config, invalid error) (*lettersOpen, statestore.Store, error) {
	o, store, err := p.reach(ctx, cfg, time.Second)
	if invalid == nil || p.daemon != "" {
		return o, store, err
	}
	if store != nil {
		_ = store.Close() // only looked at
	}
	if o == nil && p.state == "" && p.c.env(daemonEnv) != "" { // the address, not the file, is in the way
		return nil, nil, errors.Join(invalid, err)
	}
	if o == nil {
		return nil, nil, invalid
	}
	fmt.Fprintf(p.c.stderr, "warning: %v\n", invalid)
	return o, nil, nil
}

// reach finds the running daemon, or else opens the state file, for whose lock it
// waits so long.
func (p *letterPlace) reach(ctx context.Context, cfg *config.Config, wait time.Duration) (*lettersOpen, statestore.Store, error) {
	daemon := p.daemon
	if daemon == "" && p.state == "" {
		daemon = p.c.env(daemonEnv)
	}
	if daemon != "" {
		o, err := p.askNamed(daemon, cfg)
		return o, nil, err
	}
	path := p.c.statePath(p.state, cfg)
	switch _, table := statestore.Table(path); {
	case table && p.live: // on this machine another program may listen at the usual address
		return nil, nil, fmt.Errorf("the state is in the %s: name the daemon to ask by --daemon or $%s, such as --daemon %s", statestore.Describe(path), daemonEnv, defaultDaemon)
	case table:
		store, err := p.c.openState(ctx, path, cfg, wait)
		return nil, store, err
	}
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || p.live && (err != nil || info.Size() == 0) {
		if others := p.elsewhere(path, cfg); len(others) > 0 {
			o, err := p.askElsewhere(path, "", others, cfg)
			return o, nil, err
		}
		return nil, nil, p.nowhere(path, cfg)
	}
	store, err := openStateFile(path, wait)
	switch {
	case errors.Is(err, boltstate.ErrLocked) && p.state == "":
		o, err := p.askHolder(path, cfg)
		return o, nil, err
	case errors.Is(err, boltstate.ErrLocked):
		return nil, nil, fmt.Errorf("%w; or, when it is the daemon, leave --state out, or name the address that it logs by --daemon, and it is asked", err)
	case err != nil && !p.live:
		return nil, nil, fmt.Errorf("%w; or name another place by --daemon, --file or --queue", err)
	case err != nil:
		return nil, nil, err
	}
	others := p.elsewhere(path, cfg)
	if len(others) == 0 && !p.live {
		return nil, store, nil
	}
	has := ""
	switch {
	case p.routes:
		has = "pauses of its own"
	case !p.live:
		has = "no dead letters"
		var apps []string
		if apps, err = applicationsWithLetters(ctx, store); len(apps) > 0 {
			has = "dead letters of " + strings.Join(apps, ", ")
		}
	}
	err = errors.Join(err, store.Close())
	if err == nil && len(others) == 0 {
		err = fmt.Errorf("no daemon holds the state file %s: start the daemon", path)
	}
	if err != nil {
		return nil, nil, err
	}
	o, err := p.askElsewhere(path, has, others, cfg)
	return o, nil, err
}

// nowhere says where dead letters could be looked for.
func (p *letterPlace) nowhere(path string, cfg *config.Config) error {
	if p.live {
		return fmt.Errorf("no daemon holds a state file %s: go to the folder of the daemon, or name the address that it logs by --daemon", path)
	}
	if p.routes {
		return fmt.Errorf("there is no state file %s: go to the folder of the daemon, or name the address that it logs by --daemon; %s", path, noFunctions)
	}
	file := ""
	if cfg == nil && p.state == "" {
		file = ", nor a " + defaultConfig + " here that names another: name the configuration by --config or $" + configEnv
	}
	return fmt.Errorf(`there is no state file %s%s.
A running daemon is asked by --daemon %s, or at the address that it logs; one that stands still is opened by --state FILE, or in its folder.
A function's queue is --queue NAME, a program's own file --file FILE`, path, file, defaultDaemon)
}

// askNamed is for the daemon that the user named. It must have the named
// application, if any.
func (p *letterPlace) askNamed(daemon string, cfg *config.Config) (*lettersOpen, error) {
	if !strings.Contains(daemon, "://") { // as it is logged, and as --listen has it
		daemon = "http://" + daemon
	}
	return p.ask(daemon, p.stateAt(daemon, cfg), cfg, letterClient{app: p.meant(cfg)})
}

// askHolder is for the daemon that holds the state file. One that holds another state
// file refuses.
func (p *letterPlace) askHolder(path string, cfg *config.Config) (*lettersOpen, error) {
	url, err := p.holderURL(path, cfg)
	if err != nil {
		return nil, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(p.c.stderr, "a daemon holds %s: it is asked at %s\n", path, url)
	return p.ask(url, path, cfg, letterClient{state: path, app: p.meant(nil)})
}

const stateUsage = "state `file` of a stopped daemon, or dynamodb:TABLE ($" + stateEnv + "; default: the configuration's, or sluice.db)"

// statePath returns the state file, or dynamodb:TABLE: that of a flag, the
// environment, or the configuration, which may be nil.
func (c *cli) statePath(flag string, cfg *config.Config) string {
	cfg = cmp.Or(cfg, new(config.Config))
	return cmp.Or(flag, c.env(stateEnv), cfg.Daemon.State, "sluice.db")
}

// openState opens an existing state file or table. It waits so long for a file's lock.
func (c *cli) openState(ctx context.Context, place string, cfg *config.Config, wait time.Duration) (statestore.Store, error) {
	if _, ok := statestore.Table(place); !ok {
		return openStateFile(place, wait)
	}
	return statestore.Open(ctx, place, statestore.Options{AWS: func() (aws.Config, error) {
		services, _, err := c.accounts(ctx, cfg)
		if err != nil {
			return aws.Config{}, err
		}
		return services(accounts.State), nil
	}})
}

func openStateFile(path string, wait time.Duration) (statestore.Store, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no state file %s: name that of the daemon, or go to its folder", path)
	case err == nil && info.Size() == 0: // which would become one
		return nil, fmt.Errorf("%s is empty, and no state file: name that of the daemon, or go to its folder", path)
	}
	return statestore.Open(context.Background(), path, statestore.Options{LockTimeout: wait})
}

// keys verify the letters of a queue.
func (p *letterPlace) keys(cfg *config.Config) (letterkeys.Keys, error) {
	switch {
	case p.keyFile != "":
		return letterkeys.Find(func(string) string { return "" }, p.keyFile)
	case p.flags.Changed("letter-key-file"):
		return letterkeys.Keys{}, usage("--letter-key-file: it is empty: is a variable not set?")
	}
	return cmp.Or(cfg, new(config.Config)).LetterKeys(p.c.env)
}

// name is the application's.
func (p *letterPlace) name(cfg *config.Config) string {
	return p.c.applicationName(p.application, cfg)
}

func (c *cli) applicationName(flag string, cfg *config.Config) string {
	cfg = cmp.Or(cfg, new(config.Config))
	return cmp.Or(flag, c.env(applicationEnv), cfg.Name, "sluice")
}

// ask is for the daemon at a URL, which keeps its state in a file, if that is known.
// client says which state and application are meant.
func (p *letterPlace) ask(daemon, state string, cfg *config.Config, client letterClient) (*lettersOpen, error) {
	u, err := daemonURL(daemon)
	if err != nil {
		return nil, err
	}
	token, err := p.token(u, state, cfg)
	if err != nil {
		return nil, err
	}
	// A redirect to another port or to plain HTTP would have the token, too.
	client.http = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	client.base, client.token, client.down = u.String(), token, "its state file by --state"
	if p.live {
		client.down = "start it"
	}
	return &lettersOpen{api: &client, where: "the daemon at " + client.base, parks: true, close: func() error {
		client.http.CloseIdleConnections()
		return nil
	}}, nil
}

// inside answers for letters as a daemon does, within this process.
func (p *letterPlace) inside(ctx context.Context, redriving bool, box *letters.Box, where string, end func() error) (*lettersOpen, error) {
	var m sluice.Matcher
	var fetch deadletter.Fetch
	if redriving {
		own, app, err := p.c.loadApp(ctx, config.Setup{})
		if none, ok := errors.AsType[*noFileError](err); ok {
			err = fmt.Errorf("a redrive runs the routes of the configuration, and there is no %s here: name it by --config or $%s, or ask the running daemon by --daemon, which has routes", none.path, configEnv)
		}
		if err != nil {
			return nil, errors.Join(err, end())
		}
		path, _ := p.c.path()
		m, fetch = ofTables(own, app, path), daemon.Fetch(app.AWS("dynamodb"))
	}
	h := daemon.DeadLetters(ctx, box, "", m, fetch, slog.New(slog.DiscardHandler)) // the caller reports
	client := &letterClient{base: defaultDaemon, http: &http.Client{Transport: within{h}}}
	return &lettersOpen{api: client, where: where, close: end}, nil
}

// within is a transport to a handler of this process.
type within struct{ h http.Handler }

func (t within) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RemoteAddr, r.RequestURI, r.Host = "127.0.0.1:0", r.URL.RequestURI(), r.URL.Host
	out, in := io.Pipe()
	w := &pipeWriter{header: http.Header{}, begun: make(chan struct{}), to: in}
	go func() {
		defer in.Close() //nolint:errcheck // never fails
		t.h.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
	}()
	<-w.begun
	return &http.Response{StatusCode: w.status, Status: fmt.Sprint(w.status, " ", http.StatusText(w.status)), Header: w.header, Body: out, Request: r}, nil
}

// pipeWriter is used by one goroutine.
type pipeWriter struct {
	header http.Header
	status int
	begun  chan struct{} // closed with the header
	to     io.Writer
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		close(w.begun)
	}
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.to.Write(b)
}
