package localstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary plays the servers: roleEnv says how it is to behave when it
// is started as "java".
const roleEnv = "LOCALSTACK_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "serve":
		serve()
	case "archive": // a Java that writes its classes when it is asked to end
		if file, ok := strings.CutPrefix(os.Args[1], "-XX:ArchiveClassesAtExit="); ok {
			asked := make(chan os.Signal, 1)
			signal.Notify(asked, syscall.SIGTERM)
			go func() {
				<-asked
				os.WriteFile(file, []byte("classes"), 0o600)
				os.Exit(143)
			}()
		}
		serve()
	case "crash":
		fmt.Println("first line")
		fmt.Println("no license to run")
		os.Exit(7)
	case "hang":
		fmt.Println("thinking about it")
		select {}
	case "parent": // starts a server, says where it is, and never stops it
		os.Setenv(roleEnv, "serve")
		p, err := launch(context.Background(), start{server: testServer(nil), java: os.Args[0], home: "."}, os.Args[1], time.Minute)
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(p.endpoint)
		select {}
	}
}

func serve() {
	port := os.Args[len(os.Args)-1]
	fmt.Println("serving on", port)
	fmt.Println(http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })))
	os.Exit(1)
}

// testServer returns a server whose ports are the given ones first.
func testServer(ports []int) server {
	return server{
		name: "test",
		pom:  []byte("<project/>"),
		args: func(_ string, port int) ([]string, error) {
			if len(ports) > 0 {
				port, ports = ports[0], ports[1:]
			}
			return []string{strconv.Itoa(port)}, nil
		},
		ready: func(r *http.Response) bool { return r.StatusCode == http.StatusBadRequest },
	}
}

func TestLaunch(t *testing.T) {
	t.Setenv(roleEnv, "serve")
	p, err := launch(t.Context(), start{server: testServer(nil), java: os.Args[0], home: "."}, t.TempDir(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(p.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()

	s := &Stack{processes: []*process{p}}
	s.Stop()
	if c, err := net.Dial("tcp", strings.TrimPrefix(p.endpoint, "http://")); err == nil {
		c.Close()
		t.Error("the server still listens after Stop")
	}
	s.Stop() // a second one finds nothing to do
}

// The unexpected end of a server is reported with its log. A canceled wait is no such
// end.
func TestWatch(t *testing.T) {
	t.Setenv(roleEnv, "serve")
	s := &Stack{}
	defer s.Stop()
	for _, name := range []string{"one", "two"} {
		srv := testServer(nil)
		srv.name = name
		p, err := launch(t.Context(), start{server: srv, java: os.Args[0], home: "."}, t.TempDir(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		s.processes = append(s.processes, p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Watch(ctx); err != nil {
		t.Errorf("error %v of a wait that is over", err)
	}

	told := make(chan error)
	go func() { told <- s.Watch(t.Context()) }()
	s.processes[1].kill()
	err := <-told
	if err == nil || !strings.Contains(err.Error(), "two has ended by itself: signal: killed") || !strings.Contains(err.Error(), "  serving on ") {
		t.Errorf("error %v, want which server ended, how, and its log", err)
	}
	select {
	case <-s.processes[0].done:
		t.Error("the other server has ended, too")
	default:
	}
}

func TestLaunchTakesAnotherPortWhenOneWasTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port

	t.Setenv(roleEnv, "serve")
	starts := 0
	srv := testServer([]int{port})
	args := srv.args
	srv.args = func(run string, port int) ([]string, error) { starts++; return args(run, port) }
	p, err := launch(t.Context(), start{server: srv, java: os.Args[0], home: "."}, t.TempDir(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer (&Stack{processes: []*process{p}}).Stop()
	if starts != 2 {
		t.Errorf("%d starts, want 2", starts)
	}
}

func TestLaunchFails(t *testing.T) {
	for _, tt := range []struct {
		role    string
		timeout time.Duration
		want    []string
	}{
		{"crash", time.Minute, []string{"test did not start", "exit status 7", "  first line\n  no license to run"}},
		{"hang", 500 * time.Millisecond, []string{"no answer from http://127.0.0.1:", "within 500ms", "test.log"}},
	} {
		t.Run(tt.role, func(t *testing.T) {
			t.Setenv(roleEnv, tt.role)
			_, err := launch(t.Context(), start{server: testServer(nil), java: os.Args[0], home: "."}, t.TempDir(), tt.timeout)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestLaunchEndsWithContext(t *testing.T) {
	t.Setenv(roleEnv, "hang")
	ctx, cancel := context.WithCancel(t.Context())
	srv := testServer(nil)
	srv.args = func(string, int) ([]string, error) { cancel(); return nil, nil }
	if _, err := launch(ctx, start{server: srv, java: os.Args[0], home: "."}, t.TempDir(), time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestStartUsesEndpointsOfTheEnvironment(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // neither java nor mvn
	t.Setenv("JAVA_HOME", "")
	t.Setenv(EnvDynamoDB, "http://127.0.0.1:8000")
	t.Setenv(EnvSQS, "http://127.0.0.1:9324")
	s, err := Start(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	env := strings.Join(s.Environ(), "\n")
	for _, want := range []string{EnvDynamoDB + "=http://127.0.0.1:8000", EnvSQS + "=http://127.0.0.1:9324", "AWS_REGION=us-east-1"} {
		if !strings.Contains(env, want) {
			t.Errorf("Environ lacks %s", want)
		}
	}

	t.Setenv(EnvSQS, "")
	if s, err := Start(t.Context(), Options{Dir: t.TempDir(), NoSQS: true}); err != nil || s.SQS != "" {
		t.Errorf("without ElasticMQ: %v, want no server", err)
	}
	var missing *MissingToolError
	if _, err := Start(t.Context(), Options{Dir: t.TempDir()}); !errors.As(err, &missing) {
		t.Errorf("error %v, want a MissingToolError", err)
	}
}

func TestFindJava(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		home         bool // found by JAVA_HOME
		want         string
	}{
		{"17", `echo 'openjdk version "17.0.15" 2025-04-15' >&2`, false, ""},
		{"21", `echo 'openjdk version "21" 2023-09-19' >&2`, true, ""},
		{"8", `echo 'java version "1.8.0_292"' >&2`, false, "which is version 1"},
		{"11", `echo 'openjdk version "11.0.2" 2019-01-15' >&2`, true, "which is version 11"},
		{"stub", `echo 'Unable to locate a Java Runtime.' >&2; exit 1`, false, "Unable to locate"},
		{"none", "", false, "none was found"},
		{"none at home", "", true, "JAVA_HOME"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			bin := filepath.Join(dir, "bin")
			if err := os.Mkdir(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			if tt.script != "" {
				if err := os.WriteFile(filepath.Join(bin, "java"), []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", bin)
			t.Setenv("JAVA_HOME", "")
			if tt.home {
				t.Setenv("PATH", t.TempDir())
				t.Setenv("JAVA_HOME", dir)
			}
			got, err := findJava(t.Context(), java{major: 17})
			if tt.want == "" {
				if err != nil || got != filepath.Join(bin, "java") {
					t.Errorf("findJava = %q, %v", got, err)
				}
				return
			}
			var missing *MissingToolError
			if !errors.As(err, &missing) {
				t.Fatalf("error %v, want a MissingToolError", err)
			}
			for _, want := range []string{tt.want, "Java 17 or newer", "apt-get install openjdk-17-jdk", "brew install openjdk@17", "docker compose -f deploy/local/compose.yaml"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

// fakeJava makes a Java home whose java says that it is of this version.
func fakeJava(t *testing.T, home, version string, compiler bool) string {
	t.Helper()
	bin := filepath.Join(home, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	java := filepath.Join(bin, "java")
	if err := os.WriteFile(java, []byte("#!/bin/sh\necho 'openjdk version \""+version+"\"' >&2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if compiler {
		if err := os.WriteFile(filepath.Join(bin, "javac"), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return java
}

func TestSearchJava(t *testing.T) {
	user, system, inUse := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("HOME", user)
	t.Setenv("JAVA_HOME", "")
	t.Setenv("PATH", filepath.Join(inUse, "bin"))
	jdk17 := fakeJava(t, inUse, "17.0.15", true)
	fakeJava(t, filepath.Join(system, "a-11"), "11.0.2", true)
	fakeJava(t, filepath.Join(system, "b-22-jre"), "22", false)
	jdk21 := fakeJava(t, filepath.Join(system, "c-21"), "21.0.1", true)
	jdk25 := fakeJava(t, filepath.Join(user, "javas", "25"), "25", true)
	homes := []string{filepath.Join(system, "*"), "~/javas/*"}

	for _, tt := range []struct {
		name string
		need java
		want string // empty: none
	}{
		{"the one in use", java{major: 17, compiler: true, anywhere: true}, jdk17},
		{"another, not the one without a compiler", java{major: 21, compiler: true, anywhere: true}, jdk21},
		{"below the user's home", java{major: 24, compiler: true, anywhere: true}, jdk25},
		{"none is new enough", java{major: 26, anywhere: true}, ""},
		{"only the one in use counts", java{major: 21}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := searchJava(t.Context(), tt.need, homes)
			var missing *MissingToolError
			if got != tt.want || (tt.want == "") != errors.As(err, &missing) {
				t.Errorf("found %q, %v; want %q", got, err, tt.want)
			}
		})
	}

	// A compiler is found where the link leads.
	link := filepath.Join(t.TempDir(), "java")
	if err := os.Symlink(jdk21, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(link))
	if got, err := searchJava(t.Context(), java{major: 21, compiler: true}, nil); err != nil || got != link {
		t.Errorf("found %q, %v; want the link", got, err)
	}
}

// Without a Java for OpenSearch 3, one line says so and nothing fails.
func TestStartWithoutOpenSearch3SaysSo(t *testing.T) {
	for name, endpoint := range map[string]string{EnvDynamoDB: "http://d", EnvSQS: "http://s", EnvOpenSearch: "http://o", EnvOpenSearch3: ""} {
		t.Setenv(name, endpoint)
	}
	was := openSearch3
	defer func() { openSearch3 = was }()
	openSearch3.java.major = 1000
	var log strings.Builder
	s, err := Start(t.Context(), Options{Dir: t.TempDir(), Log: &log, OpenSearch: true, OpenSearch3: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if got := log.String(); !strings.HasPrefix(got, "OpenSearch 3 is left out: a JDK (Java with its compiler), version 1000 or newer, was not found") || strings.Count(got, "\n") != 1 {
		t.Errorf("log %q", got)
	}
	if s.OpenSearch != "http://o" || s.OpenSearch3 != "" {
		t.Errorf("OpenSearch at %q, 3 at %q", s.OpenSearch, s.OpenSearch3)
	}
}

// A failed server ends the wait for the others. Stop ends the running ones.
func TestStartAllFailsAsOne(t *testing.T) {
	dir := t.TempDir()
	fake := func(role string) start {
		srv := testServer(nil)
		srv.name = role
		script := filepath.Join(dir, role)
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+roleEnv+"="+role+" exec '"+os.Args[0]+"' \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return start{server: srv, java: script, home: dir, endpoint: new(string)}
	}
	serve, hang := fake("serve"), fake("hang")
	s := &Stack{}
	o := Options{Dir: t.TempDir(), Timeout: 10 * time.Minute}
	if err := s.startAll(t.Context(), o, []start{serve}); err != nil {
		t.Fatal(err)
	}
	running := *serve.endpoint
	begin := time.Now()
	err := s.startAll(t.Context(), o, []start{hang, fake("crash")})
	if err == nil || !strings.Contains(err.Error(), "crash did not start") || !strings.Contains(err.Error(), "no license to run") {
		t.Errorf("error %v, want that of the one that crashed", err)
	}
	if took := time.Since(begin); took > 9*time.Minute {
		t.Errorf("it waited %v for the one that hangs", took)
	}
	s.Stop()
	if c, err := net.Dial("tcp", strings.TrimPrefix(running, "http://")); err == nil {
		c.Close()
		t.Error("a server still listens after Stop")
	}
}

func TestMavenFailureShowsItsOutput(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "mvn"), []byte("#!/bin/sh\necho '[ERROR] no such artifact'; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	err := mavenResolve(t.Context(), []byte("<project/>"), t.TempDir())
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "no such artifact") {
		t.Errorf("error %v, want mvn's output and its code", err)
	}
}
