package deptest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sluicehq/sluice"

// rule has the allowed imports of a package, without its tests. Paths are relative to
// the module; the root is "."; "x/..." is x and everything below. A package may always
// import from its own subtree. Wherever it may import the root, it may import item,
// whose Item is an alias there, and internal/outcomes, whose errors the root makes.
type rule struct {
	pkgs    string
	ours    []string
	stdOnly bool // no other module either
}

// The first rule that matches a package holds. A package without a rule fails the test:
// add one here.
var rules = []rule{
	// The core. It stands on the standard library, and nothing of it imports
	// metrics, which hang on its Hooks.
	{pkgs: ".", ours: []string{"item", "internal/jsonscan", "internal/outcomes"}, stdOnly: true},
	{pkgs: "item", ours: []string{"internal/jsonscan"}, stdOnly: true},
	{pkgs: "internal/jsonscan", stdOnly: true},
	{pkgs: "internal/outcomes", stdOnly: true},
	{pkgs: "internal/quorum", stdOnly: true},
	{pkgs: "internal/views", ours: []string{"."}, stdOnly: true},
	{pkgs: "internal/routed", ours: []string{"."}, stdOnly: true},
	{pkgs: "metrics", stdOnly: true},
	{pkgs: "internal/commits", ours: []string{"metrics"}, stdOnly: true},
	{pkgs: "internal/tally", ours: []string{"metrics"}, stdOnly: true},
	{pkgs: "internal/brake", stdOnly: true},
	{pkgs: "internal/keypattern", stdOnly: true},
	{pkgs: "router", ours: []string{".", "internal/keypattern", "internal/routed", "internal/views", "metrics"}, stdOnly: true},
	{pkgs: "flow", ours: []string{".", "internal/backoff", "internal/quorum", "internal/routed"}},
	{pkgs: "batch", ours: []string{".", "internal/backoff", "internal/commits", "internal/quorum", "metrics"}, stdOnly: true},

	// What hangs on it. Router, sources, sinks and handlers never import each
	// other; an application brings them together.
	{pkgs: "item/sdkitem", ours: []string{"item", "internal/jsonscan"}},
	// The parts of the poller do not import the poller, and of each other only the listed.
	{pkgs: "sources/poller/internal/checkpoints", ours: []string{"state"}, stdOnly: true},
	{pkgs: "sources/poller/internal/lineage", ours: []string{".", "state"}, stdOnly: true},
	{pkgs: "sources/poller/internal/positions", ours: []string{"."}, stdOnly: true},
	{pkgs: "sources/poller/internal/quota", ours: []string{".", "sources/poller/internal/positions"}, stdOnly: true},
	{pkgs: "sources/poller/...", ours: []string{".", "flow", "state", "internal/awsclient", "internal/awserror", "internal/latectx", "internal/parallel", "internal/streamsapi", "internal/views"}},
	{pkgs: "sources/queue/...", ours: []string{".", "flow", "batch", "internal/awserror", "internal/backoff", "internal/latectx", "internal/routed", "internal/sqsclient"}},
	{pkgs: "internal/snapshot", ours: []string{".", "flow", "state", "item/sdkitem", "internal/awsclient", "internal/awserror", "internal/backoff", "internal/budget", "internal/job", "internal/latectx", "internal/wire"}},
	{pkgs: "internal/job", ours: []string{"state", "internal/backoff", "internal/staterules"}, stdOnly: true},

	{pkgs: "internal/reread", ours: []string{".", "item/sdkitem", "internal/awserror", "internal/backoff", "internal/streamsapi", "internal/wire"}},
	{pkgs: "internal/replay", ours: []string{".", "flow", "state", "internal/backoff", "internal/latectx", "internal/reread", "internal/routed", "internal/wire"}},
	{pkgs: "sources/...", ours: []string{".", "flow", "state", "internal/parallel", "internal/routed", "internal/wire"}},
	{pkgs: "internal/wire", ours: []string{".", "internal/jsonscan"}, stdOnly: true},
	{pkgs: "internal/streamsapi", ours: []string{"internal/awsclient"}},
	{pkgs: "internal/awsclient"},
	{pkgs: "internal/accounts", ours: []string{"internal/awsclient", "internal/awserror"}},
	{pkgs: "internal/accounts/ststest"},
	{pkgs: "internal/awserror"},
	{pkgs: "internal/budget", stdOnly: true},
	{pkgs: "internal/backoff", stdOnly: true},
	{pkgs: "internal/buildversion"},
	{pkgs: "internal/access", stdOnly: true},
	{pkgs: "internal/daemons", ours: []string{"internal/access"}, stdOnly: true},
	{pkgs: "internal/latectx", stdOnly: true},
	{pkgs: "internal/parallel", stdOnly: true},
	{pkgs: "internal/itemsize", ours: []string{"."}, stdOnly: true},
	{pkgs: "internal/retryafter", stdOnly: true},
	{pkgs: "internal/retrying", stdOnly: true},
	{pkgs: "internal/sqsclient"},
	{pkgs: "internal/keyhash", ours: []string{"item"}, stdOnly: true},
	{pkgs: "internal/rows", ours: []string{"internal/awsclient", "internal/awserror"}},
	{pkgs: "state/dynamostate", ours: []string{"state", "internal/awserror", "internal/holders", "internal/latectx", "internal/rows", "internal/staterules"}},
	{pkgs: "internal/kcl", ours: []string{".", "state", "internal/awserror"}},
	{pkgs: "internal/statestore", ours: []string{"state/...", "internal/access", "internal/awserror", "internal/backoff", "internal/holders", "internal/staterules"}},
	{pkgs: "state/...", ours: []string{"internal/access", "internal/staterules"}},
	{pkgs: "internal/staterules", stdOnly: true},
	{pkgs: "internal/holders", ours: []string{"state"}, stdOnly: true},
	{pkgs: "internal/pauses", ours: []string{"state"}, stdOnly: true},
	{pkgs: "state/statetest", ours: []string{"internal/staterules", "state"}},
	// What handlers ask for, and sinks do.
	{pkgs: "effect/dynamo", ours: []string{"."}, stdOnly: true},
	{pkgs: "effect/message", ours: []string{"."}, stdOnly: true},
	{pkgs: "effect/document", stdOnly: true},
	{pkgs: "internal/docrules", ours: []string{"effect/document", "internal/jsonscan"}, stdOnly: true},
	{pkgs: "internal/docversion", ours: []string{".", "internal/docrules"}, stdOnly: true},
	{pkgs: "internal/versiontext", ours: []string{"handlers/projection"}, stdOnly: true},
	{pkgs: "sinks/dynamodb", ours: []string{".", "batch", "effect/dynamo", "item/sdkitem", "internal/awsclient", "internal/awserror", "internal/backoff", "internal/budget", "internal/commits", "internal/itemsize", "internal/keyhash", "internal/parallel", "internal/quorum", "metrics"}},
	{pkgs: "sinks/sqs", ours: []string{".", "batch", "internal/awserror", "internal/backoff", "internal/keyhash", "internal/sqsclient", "metrics"}},
	{pkgs: "sinks/opensearch/...", ours: []string{".", "batch", "effect/document", "internal/backoff", "internal/docrules", "internal/jsonscan", "internal/parallel", "internal/quorum", "internal/reindex", "internal/retryafter", "internal/retrying", "metrics"}},
	{pkgs: "sinks/...", ours: []string{".", "batch"}},
	// They stand between a table and an index, and are given both.
	{pkgs: "internal/audit", ours: []string{".", "effect/document", "internal/backoff", "internal/docrules", "internal/parallel"}, stdOnly: true},
	{pkgs: "internal/reindex", ours: []string{".", "effect/document", "internal/backoff", "internal/docrules"}, stdOnly: true},
	{pkgs: "deadletter/...", ours: []string{".", "state", "internal/access", "internal/staterules"}},
	{pkgs: "internal/letterkeys", ours: []string{"internal/access"}, stdOnly: true},
	{pkgs: "internal/letters", ours: []string{"deadletter", "state"}},
	{pkgs: "internal/page", ours: []string{".", "deadletter", "internal/holders", "internal/letters"}, stdOnly: true},
	{pkgs: "handlers/projection", ours: []string{".", "effect/document", "internal/docrules", "internal/docversion", "internal/jsonscan", "internal/routed", "metrics"}, stdOnly: true},
	{pkgs: "handlers/escalation/webhook", ours: []string{".", "internal/retryafter"}, stdOnly: true},
	{pkgs: "handlers/...", ours: []string{".", "effect/document", "effect/dynamo", "effect/message", "internal/backoff", "internal/brake", "internal/keyhash", "internal/parallel", "metrics"}},
	{pkgs: "metrics/...", ours: []string{".", "internal/buildversion", "flow", "internal/snapshot", "sources/...", "deadletter", "metrics"}},

	{pkgs: "internal/scrape"},
	{pkgs: "tracing", ours: []string{".", "flow", "internal/keyhash", "metrics"}},
	{pkgs: "internal/lambdatraces", ours: []string{"sources/lambda", "tracing"}},

	// What brings them together.
	{pkgs: "run", ours: []string{"internal/daemon", ".", "metrics"}},
	{pkgs: "internal/daemon", ours: []string{"internal/access", "internal/accounts", "internal/letterkeys", "internal/letters", "internal/snapshot", "internal/reread", "internal/awsclient", "internal/awserror", "internal/backoff", "internal/buildversion", "internal/daemons", "internal/holders", "internal/job", "internal/lambdatraces", "internal/letterqueue", "internal/page", "internal/pauses", "internal/retrying", "internal/routed", "internal/statestore", "internal/scrape", ".", "router", "flow", "batch", "sources/...", "sinks/...", "handlers/...", "state/...", "deadletter/...", "metrics/...", "tracing"}},
	// Not run: it links the poller, and a Lambda function is made of a
	// configuration, too.
	{pkgs: "internal/config", ours: []string{".", "metrics", "item", "router", "flow", "batch", "effect/document", "effect/dynamo", "effect/message", "internal/reindex", "sinks/...", "handlers/...", "internal/accounts", "internal/awsclient", "internal/docrules", "internal/keyhash", "internal/keypattern", "internal/letterkeys", "internal/versiontext"}},
	{pkgs: "streamtest/...", ours: []string{".", "effect/document", "internal/backoff", "internal/docrules", "internal/itemsize", "internal/recordtest", "internal/routed", "internal/views", "flow", "router"}},
	{pkgs: "internal/runtimeapi", stdOnly: true},
	// Of functions.
	{pkgs: "internal/letterqueue", ours: []string{".", "flow", "deadletter", "sinks/sqs", "metrics", "state", "internal/access", "internal/awsclient", "internal/backoff", "internal/letterkeys"}},
	{pkgs: "internal/function", ours: []string{".", "internal/config", "router", "flow", "batch", "sources/lambda", "metrics/emf", "internal/accounts", "internal/awsclient", "internal/letterqueue"}},
	{pkgs: "cmd/sluice-lambda", ours: []string{"internal/function", "internal/lambdatraces", "sources/lambda", "tracing"}},
	{pkgs: "cmd/sluice", ours: []string{
		".", "internal/config", "internal/daemon", "router", "flow", "batch", "effect/document", "effect/dynamo", "internal/audit", "internal/replay", "internal/snapshot", "internal/reread", "internal/reindex", "handlers/...",
		"sources/...", "sinks/...", "state/...", "deadletter", "metrics/...", "deploy/...", "internal/access", "internal/accounts", "internal/awsclient", "internal/awserror", "internal/backoff", "internal/brake", "internal/buildversion", "internal/daemons", "internal/docrules", "internal/docversion", "internal/function", "internal/holders", "internal/job", "internal/kcl", "internal/letterkeys", "internal/letterqueue", "internal/letters", "internal/page", "internal/parallel", "internal/pauses", "internal/runtimeapi", "internal/statestore", "internal/tally", "internal/versiontext", "internal/views", "internal/wire",
	}},

	// Examples are a user's code: all that is public, nothing internal. One may
	// stand on another.
	{pkgs: "examples/...", ours: []string{
		"examples/...", ".", "item", "item/sdkitem", "effect/document", "effect/dynamo", "effect/message", "router", "flow", "batch", "sources/...", "state/...", "sinks/...",
		"deadletter/...", "handlers/...", "metrics/...", "run", "streamtest",
	}},

	// Of the project itself; rules above never name them, so that no product
	// code imports them.
	{pkgs: "deploy/..."},
	{pkgs: "internal/localstack", ours: []string{"deploy/local", "internal/backoff"}},
	{pkgs: "cmd/sluice-local", ours: []string{"internal/buildversion", "internal/localstack"}}, // never part of sluice
	{pkgs: "internal/browsertest", ours: []string{"internal/localstack"}},
	{pkgs: "internal/localtest", ours: []string{"internal/localstack"}},
	{pkgs: "internal/recordtest", ours: []string{"."}},
	{pkgs: "internal/releasetest", ours: []string{".", "deadletter", "internal/pauses", "internal/recordtest", "router", "state"}},
	{pkgs: "internal/benchdata", stdOnly: true},
	{pkgs: "internal/fleettest", ours: []string{"bench/local", "internal/backoff", "state/dynamostate", "streamtest"}},
	{pkgs: "internal/configref", ours: []string{"internal/config"}},
	{pkgs: "internal/tabletest", ours: []string{".", "effect/dynamo", "item/sdkitem", "streamtest"}},
	{pkgs: "internal/deptest/..."},
	{pkgs: "internal/doctest"},  // tests only
	{pkgs: "internal/sim"},      // tests only
	{pkgs: "internal/losstest"}, // tests only
	{pkgs: "internal/demo", ours: []string{"..."}},
	{pkgs: "internal/cmd/...", ours: []string{"..."}},
	{pkgs: "bench/...", ours: []string{"..."}},
}

func TestImports(t *testing.T) {
	files := goFiles(t)
	if len(files) < 50 {
		t.Fatalf("only %d Go files found: is the walk broken?", len(files))
	}
	for _, f := range files {
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, breach := range check(f.pkg, f.imports) {
			t.Errorf("%s: %s", f.path, breach)
		}
	}
}

// check returns the forbidden imports of a package.
func check(pkg string, imports []string) []string {
	i := slices.IndexFunc(rules, func(r rule) bool { return within(r.pkgs, pkg) })
	if i < 0 {
		return []string{fmt.Sprintf("package %s has no rule: add one to %s", pkg, "internal/deptest/imports_test.go")}
	}
	var breaches []string
	for _, imp := range imports {
		target, isOurs := relative(imp)
		switch {
		case !isOurs:
			// Import paths of the standard library have no dot in their first element.
			first, _, _ := strings.Cut(imp, "/")
			if rules[i].stdOnly && strings.Contains(first, ".") {
				breaches = append(breaches, fmt.Sprintf("package %s may import the standard library only, not %s", pkg, imp))
			}
		case pkg != "." && strings.HasPrefix(target, pkg+"/"): // its own subtree
		case pkg != "." && strings.HasPrefix(pkg, target+"/"): // its own parents
		case (target == "item" || target == "internal/outcomes" && !within("examples/...", pkg)) && slices.Contains(rules[i].ours, "."):
		case !slices.ContainsFunc(rules[i].ours, func(p string) bool { return within(p, target) }):
			breaches = append(breaches, fmt.Sprintf("package %s must not import %s; allowed: %s", pkg, target, strings.Join(rules[i].ours, " ")))
		}
	}
	return breaches
}

// The rules refuse forbidden imports.
func TestCheckRefuses(t *testing.T) {
	for _, tt := range []struct {
		pkg, imp string
		ok       bool
	}{
		{"router", module, true},
		{"router", "strings", true},
		{"router", module + "/item", true},
		{"batch", module + "/router", false},
		{"router", module + "/flow", false},
		{"router", module + "/sources/lambda", false},
		{"sources/lambda", module + "/router", false},
		{"sources/lambda", module + "/sources/poller", false},
		{"sources/poller", module + "/sources/poller/lineage", true},
		{"sources/poller/lineage", module + "/sources/poller", true},
		{"sources/poller", module + "/state/bolt", false},
		{"sinks/sqs", module + "/handlers/escalation", false},
		{"handlers/escalation", module + "/sinks/sqs", false},
		{"flow", module + "/metrics/prom", false},
		{"item", module, false},
		{"item", "github.com/aws/aws-sdk-go-v2/aws", false},
		{"sinks/sqs", "github.com/aws/aws-sdk-go-v2/aws", true},
		{"run", module + "/internal/localstack", false},
		{"examples/manhunt", module + "/internal/quorum", false},
		{"examples/manhunt", module + "/internal/outcomes", false},
		{"sinks/sqs", module + "/internal/outcomes", true},
		{"sinks/sqs", module + "x/y", true}, // another module
		{"nowhere", "fmt", false},
	} {
		if breaches := check(tt.pkg, []string{tt.imp}); (len(breaches) == 0) != tt.ok {
			t.Errorf("%s imports %s: %q, want ok %v", tt.pkg, tt.imp, breaches, tt.ok)
		}
	}
}

// within reports whether pattern matches pkg.
func within(pattern, pkg string) bool {
	base, tree := strings.CutSuffix(pattern, "...")
	if !tree {
		return pkg == pattern
	}
	return base == "" || strings.HasPrefix(pkg+"/", base)
}

// relative returns an import path of this module relative to it.
func relative(imp string) (string, bool) {
	if imp == module {
		return ".", true
	}
	return strings.CutPrefix(imp, module+"/")
}

type goFile struct {
	path    string // relative to the module
	pkg     string
	imports []string
}

// goFiles parses every Go file of the module. Reading them here, and not
// through the go command, also makes them inputs of this test's cached result.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []goFile
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			other := rel != "." && err == nil // another module
			if other || rel != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		f := goFile{path: rel, pkg: path.Dir(rel)}
		for _, spec := range syntax.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imp)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
