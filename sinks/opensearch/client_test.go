package opensearch

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestConnectionIsValidated(t *testing.T) {
	cfg := awsConfig()
	noRegion := awsConfig()
	noRegion.Region, noRegion.Credentials = "", nil
	for _, tt := range []struct {
		c    Connection
		want []string // of the error; none: there is no error
	}{
		{Connection{}, nil},
		{Connection{URLs: []string{"https://a.example:9200/search/", "http://b.example"}, Username: "u", Password: "p", AllowPlainHTTP: []string{"B.example"}}, nil},
		{Connection{URLs: []string{"https://u:p%40@a.example"}}, nil},
		{Connection{AWS: &cfg, Service: "aoss"}, nil},
		{Connection{URLs: []string{"http://ok", "localhost:9200", "ftp://x", "http://"}}, []string{"URLs[1]", "URLs[2]", "URLs[3]"}},
		{Connection{URLs: []string{"http://u:hidden#x@host:9200"}}, []string{"URLs[0]", "percent-encoded"}},
		{Connection{URLs: []string{"http://u:hid den@host"}}, []string{"URLs[0]"}},
		{Connection{URLs: []string{"http://host/?pretty"}}, []string{"URLs[0]", "query"}},
		{Connection{URLs: []string{"http://u@host"}}, []string{"URLs[0]", "user name without a password"}},
		{Connection{Username: "u"}, []string{"Username and Password"}},
		{Connection{AWS: &cfg, Username: "u", Password: "hidden"}, []string{"AWS signs"}},
		{Connection{URLs: []string{"https://a.example", "http://b.example"}, Username: "u", Password: "hidden"}, []string{"URLs[1] is plain http", "https, or the host in AllowPlainHTTP"}},
		{Connection{URLs: []string{"http://u:hidden@b.example"}}, []string{"URLs[0] is plain http"}},
		{Connection{URLs: []string{"http://b.example"}, AWS: &cfg}, []string{"URLs[0] is plain http"}},
		{Connection{URLs: []string{"http://b.example:9200"}, AWS: &cfg, AllowPlainHTTP: []string{"example", "b.example:9201", "*"}}, []string{"URLs[0] is plain http"}},
		{Connection{URLs: []string{"http://b.example:9200"}, AWS: &cfg, AllowPlainHTTP: []string{"b.example:9200"}}, nil},
		{Connection{URLs: []string{"http://10.0.0.7", "http://[fd00::7]:9200"}, AWS: &cfg}, []string{"URLs[0] is plain http", "URLs[1] is plain http"}},
		{Connection{URLs: []string{"http://u:p@127.0.0.1:9200", "http://[::1]", "http://localhost"}}, nil},
		{Connection{URLs: []string{"http://b.example"}}, nil}, // nothing to read but documents
		{Connection{AWS: &cfg, Service: "s3"}, []string{`Service is "s3"`}},
		{Connection{Service: "es"}, []string{"AWS is nil"}},
		{Connection{AWS: &noRegion}, []string{"no Region", "no credentials"}},
		{Connection{Timeout: -1}, []string{"Timeout is -1ns"}},
		{Connection{CAFile: filepath.Join(t.TempDir(), "absent.pem")}, []string{"CAFile", "absent.pem"}},
		{Connection{CAFile: "client_test.go"}, []string{"CAFile client_test.go holds no certificate"}},
	} {
		_, err := Connect(tt.c)
		if (err != nil) != (tt.want != nil) {
			t.Errorf("%v: %v", tt.c.URLs, err)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nhas no %q", err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), "hid") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

// answering returns a Client of a server that answers all with f.
func answering(t *testing.T, f http.HandlerFunc, changes ...func(*Connection)) *Client {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	c := Connection{URLs: []string{s.URL}}
	for _, change := range changes {
		change(&c)
	}
	return connected(t, c)
}

func connected(t *testing.T, c Connection) *Client {
	t.Helper()
	client, err := Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestCall(t *testing.T) {
	type got struct{ Method, URI, Type, Body string }
	for _, tt := range []struct {
		method, path, prefix string
		in                   any
		want                 got
	}{
		{"GET", "/", "", nil, got{"GET", "/", "", ""}},
		{"PUT", "/a%2Fb/_doc/x%3Fy%20%2B?routing=r%26s&refresh=true", "", map[string]string{"a": "<&>"}, got{"PUT", "/a%2Fb/_doc/x%3Fy%20%2B?routing=r%26s&refresh=true", "application/json", `{"a":"<&>"}` + "\n"}},
		{"POST", "/_mget", "/pre%20fix/", []byte("raw"), got{"POST", "/pre%20fix/_mget", "application/json", "raw"}},
		{"GET", "/i/_doc/a%2Fb", "/p", nil, got{"GET", "/p/i/_doc/a%2Fb", "", ""}},
	} {
		c := answering(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			body, _ := encodeBody(got{r.Method, r.RequestURI, r.Header.Get("Content-Type"), string(b)})
			w.Write(body)
		}, func(c *Connection) { c.URLs[0] += tt.prefix })
		var out got
		if err := c.Call(t.Context(), tt.method, tt.path, tt.in, &out); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(tt.want, out); diff != "" {
			t.Error(diff)
		}
		var raw []byte
		if err := c.Call(t.Context(), tt.method, tt.path, tt.in, &raw); err != nil || !strings.Contains(string(raw), `"URI"`) {
			t.Errorf("%s %v", raw, err)
		}
		if err := c.Call(t.Context(), tt.method, tt.path, tt.in, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestCallRefusesPaths(t *testing.T) {
	c := answering(t, func(http.ResponseWriter, *http.Request) { t.Error("called") })
	for _, path := range []string{"", "a", "http://x/y", "//host/y", "/%zz"} {
		if err := c.Call(t.Context(), "GET", path, nil, nil); err == nil || !strings.Contains(err.Error(), "percent-encoded") {
			t.Errorf("%q: %v", path, err)
		}
	}
	if err := c.Call(t.Context(), "POST", "/x", func() {}, nil); err == nil || !strings.Contains(err.Error(), "cannot be encoded") {
		t.Error(err)
	}
}

func TestStatusError(t *testing.T) {
	for _, tt := range []struct {
		status      int
		body        string
		typ, reason string
		text        string // in the error, beside the reason
	}{
		{404, `{"error":{"root_cause":[],"type":"index_not_found_exception","reason":"no such index [x]"},"status":404}`, "index_not_found_exception", "no such index [x]", "create the index"},
		{400, `{"error":"no handler found for uri [/x]"}`, "", "no handler found for uri [/x]", "GET /x at http://127.0.0.1:"},
		{403, `{"Message":"User: anonymous is not authorized"}`, "", "User: anonymous is not authorized", "lacks the permission"},
		{403, `{"error":{"type":"cluster_block_exception","reason":"blocked"}}`, "cluster_block_exception", "blocked", "disk"},
		{403, `{"message":"no"}`, "", "no", "lacks the permission"},
		{401, `Unauthorized`, "", "Unauthorized", "not accepted"},
		{413, "", "", "", "larger than"},
		{502, "<html>\n Bad\n gateway", "", "<html> Bad gateway", ""},
		{500, "\xff\xfe", "", "an answer that is no text", ""},
		{500, strings.Repeat("é", 300), "", strings.Repeat("é", 200) + "…", ""},
		{400, `[1]`, "", "[1]", ""},
		{302, "", "", "", "leads somewhere else"},
	} {
		c := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		})
		err := c.Call(t.Context(), "GET", "/x?secret=1", nil, nil)
		var e *StatusError
		if !errors.As(err, &e) {
			t.Fatalf("%v is no StatusError", err)
		}
		if e.Status != tt.status || e.Type != tt.typ || e.Reason != tt.reason || e.Method != "GET" || e.Path != "/x" {
			t.Errorf("%+v, want %+v", e, tt)
		}
		for _, want := range []string{tt.typ, tt.reason, tt.text} {
			if !strings.Contains(e.Error(), want) {
				t.Errorf("%v\nhas no %q", e, want)
			}
		}
	}
	e := &StatusError{Reason: "failed to parse field [n]. Preview of field's value: 'hidden'"}
	if strings.Contains(e.Error(), "hidden") {
		t.Errorf("the error quotes a document: %v", e)
	}
	e = &StatusError{Method: "POST", Path: "/_mget", Status: 404} // of one document of several
	if want := "opensearch: POST /_mget: status 404"; e.Error() != want {
		t.Errorf("%q, want %q", e, want)
	}
}

func TestNoAnswer(t *testing.T) {
	tls := httptest.NewTLSServer(nil)
	defer tls.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	tls.Config.ErrorLog, plain.Config.ErrorLog = quiet(), quiet()
	for _, tt := range []struct{ url, want string }{
		{"http://127.0.0.1:1", "is the service running"},
		{tls.URL, "CAFile"},
		{"https" + strings.TrimPrefix(plain.URL, "http"), "does not speak TLS"},
	} {
		u, _ := url.Parse(tt.url)
		u.User = url.UserPassword("somebody", "hidden")
		err := connected(t, Connection{URLs: []string{u.String()}}).Call(t.Context(), "GET", "/x", nil, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "GET /x at "+tt.url) {
			t.Errorf("%v\nwant %q", err, tt.want)
		}
		if strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "somebody") {
			t.Errorf("the error shows who asks: %v", err)
		}
	}
}

// An answer that breaks off, is empty or is no JSON is an error that says so.
func TestAnswerThatCannotBeRead(t *testing.T) {
	for _, f := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"a":`)
		},
		func(http.ResponseWriter, *http.Request) {},
		func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
	} {
		var out any
		err := answering(t, f).Call(t.Context(), "GET", "/x", nil, &out)
		if err == nil || !strings.Contains(err.Error(), "answer cannot be read") {
			t.Errorf("%v", err)
		}
	}
}

// A call is made once, also when the connection is closed under it.
func TestCallIsMadeOnce(t *testing.T) {
	var n atomic.Int64
	c := answering(t, func(http.ResponseWriter, *http.Request) { n.Add(1); panic(http.ErrAbortHandler) })
	if err := c.Call(t.Context(), "POST", "/x", "body", nil); err == nil || n.Load() != 1 {
		t.Errorf("%d requests, %v", n.Load(), err)
	}
}

func TestTimeoutOfCall(t *testing.T) {
	gone := make(chan struct{})
	f := func(_ http.ResponseWriter, r *http.Request) { <-gone }
	c := answering(t, f, func(c *Connection) { c.Timeout = time.Millisecond })
	defer close(gone)
	if err := c.Call(t.Context(), "GET", "/x", nil, nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the time ran out") {
		t.Error(err)
	}
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := c.Call(ctx, "GET", "/x", nil, nil); !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestCAFile(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := connected(t, Connection{URLs: []string{s.URL}, CAFile: file}).Call(t.Context(), "GET", "/", nil, nil); err != nil {
		t.Error(err)
	}
}

func TestBasicAuth(t *testing.T) {
	for _, inURL := range []bool{false, true} {
		c := answering(t, func(w http.ResponseWriter, r *http.Request) {
			if u, p, _ := r.BasicAuth(); u != "u@x" || p != "p:/" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}, func(c *Connection) {
			if inURL {
				c.URLs[0] = strings.Replace(c.URLs[0], "//", "//u%40x:p%3A%2F@", 1)
			} else {
				c.Username, c.Password = "u@x", "p:/"
			}
		})
		if err := c.Call(t.Context(), "GET", "/", nil, nil); err != nil {
			t.Error(err)
		}
	}
}
