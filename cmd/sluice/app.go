package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/config"
)

// cli is the process as its commands see it.
type cli struct {
	lookup         func(string) (string, bool) // of the environment
	stdin          io.Reader
	stdout, stderr io.Writer
	file           string // --config
	own            account
	browse         func(file string) error // shows a file in a browser
	unknown        error                   // names the command of `sluice nonsense --help`
}

// env is the value of a variable, "" when it is not set.
func (c *cli) env(name string) string {
	v, _ := c.lookup(name)
	return v
}

const (
	configEnv     = "SLUICE_CONFIG"
	defaultConfig = "sluice.yaml"
)

// path returns the configuration file, and whether the user named it.
func (c *cli) path() (path string, named bool) {
	if c.file != "" {
		return c.file, true
	}
	if path := c.env(configEnv); path != "" {
		return path, true
	}
	return defaultConfig, false
}

// noFileError says that no configuration file exists.
type noFileError struct {
	path  string
	named bool
}

func (e *noFileError) Error() string {
	if e.named {
		return fmt.Sprintf("there is no file %s: name the configuration by --config or $%s, or write one by sluice init --config %s", e.path, configEnv, e.path)
	}
	return fmt.Sprintf("there is no %s here: write one by sluice init, or name another by --config or $%s; docs/configuration.md says what can be in it", e.path, configEnv)
}

// load reads the file, without a call to anybody.
func (c *cli) load() (*config.Config, error) {
	path, named := c.path()
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &noFileError{path: path, named: named}
	case err != nil:
		return nil, fmt.Errorf("the configuration: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder: name the file in it by --config or $%s", path, configEnv)
	}
	return config.Load(path, c.lookup)
}

// loadMaybe is load for commands that work without a file: nil if there is none
// and nobody has named one.
func (c *cli) loadMaybe() (*config.Config, error) {
	cfg, err := c.load()
	if none, ok := errors.AsType[*noFileError](err); ok && !none.named {
		return nil, nil
	}
	return cfg, err
}

// build makes sinks and routes of the file, for commands other than run. It sets the
// accounts and the logger of s.
func (c *cli) build(ctx context.Context, cfg *config.Config, s config.Setup) (*config.App, error) {
	var err error
	if s.AWS, s.Accounts, err = c.accounts(ctx, cfg); err != nil {
		return nil, err
	}
	s.Logger = c.logger()
	return cfg.Build(ctx, s)
}

// loadApp is load and build, without a call to anybody.
func (c *cli) loadApp(ctx context.Context, s config.Setup) (*config.Config, *config.App, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	app, err := c.build(ctx, cfg, s)
	return cfg, app, err
}

// logger logs failures beside a command's output.
func (c *cli) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// route finds a route by its name. With "" it returns the only route that has what
// the command needs; kind names that.
func route(app *config.App, name, kind string, has func(config.BuiltRoute) bool) (config.BuiltRoute, error) {
	byName := func(r config.BuiltRoute) string { return r.Name }
	found := slices.DeleteFunc(slices.Clone(app.Routes), func(r config.BuiltRoute) bool { return !has(r) })
	names, all := mapped(found, byName), mapped(app.Routes, byName)
	if name == "" {
		switch len(found) {
		case 0:
			return config.BuiltRoute{}, fmt.Errorf("the file has no %s route", kind)
		case 1:
			return found[0], nil
		}
		return config.BuiltRoute{}, usage("there are several %s routes: say which by --route: %s", kind, strings.Join(names, ", "))
	}
	if i := slices.Index(names, name); i >= 0 {
		return found[i], nil
	}
	if slices.Contains(all, name) {
		return config.BuiltRoute{}, usage("--route: %q is no %s route", name, kind)
	}
	return config.BuiltRoute{}, usage("--route: there is no route %q%s", name, didYouMean(name, all))
}

// knownRoute refuses the name of no route; "" is none.
func knownRoute(app *config.App, name string) error {
	if name == "" {
		return nil
	}
	_, err := route(app, name, "", func(config.BuiltRoute) bool { return true })
	return err
}

// mapped returns what f makes of each.
func mapped[From, To any](all []From, f func(From) To) []To {
	made := make([]To, len(all))
	for i, one := range all {
		made[i] = f(one)
	}
	return made
}

// didYouMean proposes the nearest of the names, and lists all when none is near.
func didYouMean(name string, names []string) string {
	best := nearest(name, names)
	switch {
	case best != "":
		return fmt.Sprintf(": did you mean %q?", best)
	case len(names) > 0:
		return "; there are " + strings.Join(names, ", ")
	}
	return ""
}

// nearest is the name that is most like the given one, "" when none is.
func nearest(name string, names []string) string {
	best, least := "", len(name)/2+1
	for _, n := range names {
		if d := config.Edits(strings.ToLower(name), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	return best
}
