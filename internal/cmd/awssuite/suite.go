package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
)

// job is the tests of one package that use servers.
type job struct {
	pkg    string // its folder below the root
	tests  []string
	search bool // some need OpenSearch
	env    []string
}

func (j job) searches() bool { return j.search }

// findJobs finds the tests of the files that need servers: they begin with //go:build
// integration, one with aws too. It leaves out what leftOut names.
func findJobs(root string, pkg, run *regexp.Regexp) ([]job, error) {
	found := map[string]*job{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "tools") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || leftOut[filepath.ToSlash(dir)] != "" || !pkg.MatchString(filepath.ToSlash(dir)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !integration(text) {
			return err
		}
		j := found[dir]
		if j == nil {
			j = &job{pkg: filepath.ToSlash(dir)}
			found[dir] = j
		}
		j.search = j.search || bytes.Contains(text, []byte("localtest.OpenSearch"))
		for _, name := range tests(path, text) {
			if leftOut[j.pkg+"."+name] == "" && run.MatchString(name) {
				j.tests = append(j.tests, name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []job
	for _, j := range found {
		if len(j.tests) > 0 {
			all = append(all, *j)
		}
	}
	slices.SortFunc(all, func(a, b job) int { return strings.Compare(a.pkg, b.pkg) })
	return all, nil
}

// integration reports whether the file is for runs with servers alone, and no proof.
func integration(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if !constraint.IsGoBuild(string(first)) {
		return false
	}
	expr, err := constraint.Parse(string(first))
	return err == nil && !expr.Eval(func(tag string) bool { return tag == "long" }) &&
		expr.Eval(func(tag string) bool { return tag == "integration" || tag == "aws" })
}

func tests(path string, text []byte) []string {
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil // go test says so
	}
	var names []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// runJobs runs the tests of some packages beside each other and returns the
// packages that failed.
func runJobs(ctx context.Context, root string, all []job, env []string, n int, out io.Writer) (failed []string) {
	var mu sync.Mutex
	var done errgroup.Group
	done.SetLimit(n)
	for _, j := range all {
		done.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			begin := time.Now()
			text, err := runJob(ctx, root, j, env)
			mu.Lock()
			defer mu.Unlock()
			took := time.Since(begin).Round(time.Second)
			switch {
			case ctx.Err() != nil: // it was ended
			case err != nil:
				failed = append(failed, j.pkg)
				fmt.Fprintf(out, "%s\nFAIL  ./%s after %v: %v\n", text, j.pkg, took, err)
			default:
				fmt.Fprintf(out, "ok    ./%s  %d tests in %v\n", j.pkg, len(j.tests), took)
			}
			return nil
		})
	}
	_ = done.Wait()
	return failed
}

// runJob ends with all processes that the tests have started.
func runJob(ctx context.Context, root string, j job, env []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count", "1", "-vet=off", "-tags", "integration,aws", "-timeout", "2h", "-v",
		"-run", "^("+strings.Join(j.tests, "|")+")$", "./"+j.pkg)
	cmd.Dir, cmd.Env = root, append(slices.Clone(env), j.env...)
	inGroup(cmd)
	cmd.WaitDelay = 30 * time.Second
	text, err := cmd.CombinedOutput()
	if err != nil {
		return text, err
	}
	for _, name := range j.tests {
		if !bytes.Contains(text, []byte("--- PASS: "+name+" ")) {
			return text, fmt.Errorf("%s did not run to its end", name)
		}
	}
	return nil, nil
}

// testEnv leads the tests to the gateway and away from the caller's credentials.
func testEnv(environ []string, g *gateway) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "SLUICE_")
	})
	stack := localstack.Stack{DynamoDB: g.dynamodbURL, SQS: g.sqsURL, OpenSearch: g.searchURL}
	if !g.account.local {
		env = append(env, localtest.EnvAWS+"=1")
	}
	return append(append(env, stack.Environ()...), localtest.EnvPrefix+"="+g.prefix,
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull)
}
