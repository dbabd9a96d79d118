package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

var local = Options{AllowHTTP: true, AllowPrivate: true, Now: func() time.Time { return time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC) }}

func outcome(err error) string {
	retry, after := errors.AsType[*outcomes.Retry](err)
	switch {
	case err == nil:
		return "done"
	case sluice.IsPermanent(err):
		return "permanent"
	case after && outcomes.IsOverloaded(err):
		return "overloaded, after " + retry.After.String()
	case after:
		return "after " + retry.After.String()
	case outcomes.IsOverloaded(err):
		return "overloaded"
	}
	return "again"
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		code  int
		after string
		want  string
	}{
		{200, "", "done"}, {202, "9", "done"}, {204, "", "done"},
		{400, "", "permanent"}, {401, "", "permanent"}, {404, "5", "permanent"}, {410, "", "permanent"},
		{408, "", "again"}, {425, "", "again"}, {408, "4", "after 4s"}, {429, "", "overloaded"}, {429, "7", "overloaded, after 7s"},
		{500, "", "again"}, {500, "9", "after 9s"}, {502, "", "again"}, {503, "", "again"}, {504, "", "again"},
		{503, "120", "overloaded, after 2m0s"}, {503, "Wed, 01 May 2024 10:00:30 GMT", "overloaded, after 30s"},
		{503, "Wed, 01 May 2024 09:00:00 GMT", "overloaded"}, {503, "soon", "overloaded"}, {503, "-5", "overloaded"},
		{503, "99999999999999", "overloaded, after 1h0m0s"}, {503, "Wed, 01 May 2030 09:00:00 GMT", "overloaded, after 1h0m0s"},
		{301, "", "permanent"}, {304, "", "permanent"},
	} {
		t.Run(fmt.Sprint(tt.code, tt.after), func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.after != "" {
					w.Header().Set("Retry-After", tt.after)
				}
				w.WriteHeader(tt.code)
			}))
			defer srv.Close()
			err := client(t, local).Post(t.Context(), srv.URL+"/secret", "k", []byte(`{}`))
			if outcome(err) != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the URL: %v", err)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h := r.Header
		got = append(got, fmt.Sprint(r.Method, r.URL.Path, h["Content-Type"], h["Idempotency-Key"], h["User-Agent"], string(body), err))
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
		}
	}))
	defer srv.Close()
	if err := client(t, local).Post(t.Context(), srv.URL+"/old", "a#0", []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	want := `POST/%s[application/json] [a#0] [sluice-webhook/1] {"a":1} <nil>`
	if len(got) != 2 || strings.ReplaceAll(got[0], " ", "") != strings.ReplaceAll(fmt.Sprintf(want, "old"), " ", "") ||
		strings.ReplaceAll(got[1], " ", "") != strings.ReplaceAll(fmt.Sprintf(want, "new"), " ", "") {
		t.Errorf("%q", got)
	}
}

// A redirect leads to no other host, to no other method, and to an end.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was called") }))
	defer other.Close()
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		switch r.URL.Path {
		case "/host":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/get":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		}
	}))
	defer srv.Close()
	for path, want := range map[string]int{"/host": 1, "/get": 1, "/loop": maxRedirects + 1} {
		calls = 0
		err := client(t, local).Post(t.Context(), srv.URL+path, "k", nil)
		if outcome(err) != "permanent" || !strings.Contains(err.Error(), "a redirect that is not followed") || calls != want {
			t.Errorf("%s: %v after %d calls, want %d", path, err, calls, want)
		}
	}
}

func TestRefused(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	defer srv.Close()
	for _, tt := range []struct {
		name           string
		o              Options
		url, key, body string
		want           string
	}{
		{"http", Options{AllowPrivate: true}, srv.URL, "k", "", "is http, want https"},
		{"private", Options{AllowHTTP: true}, srv.URL, "k", "", "address 127.0.0.1 is not public"},
		{"a name", Options{AllowHTTP: true}, strings.Replace(srv.URL, "127.0.0.1", "localhost", 1), "k", "", "is not public"},
		{"metadata", Options{AllowHTTP: true}, "http://169.254.169.254/latest", "k", "", "address 169.254.169.254 is not public"},
		{"shared", Options{AllowHTTP: true}, "http://100.64.0.1/", "k", "", "is not public"},
		{"mapped", Options{AllowHTTP: true}, "http://[::ffff:10.0.0.1]/", "k", "", "address 10.0.0.1 is not public"},
		{"NAT64 of a private one", Options{AllowHTTP: true}, "http://[64:ff9b::a00:5]/", "k", "", "is not public"},
		{"NAT64 of the metadata", Options{AllowHTTP: true}, "http://[64:ff9b::a9fe:a9fe]/", "k", "", "is not public"},
		{"NAT64 of a network's own", Options{AllowHTTP: true}, "http://[64:ff9b:1::a00:5]/", "k", "", "is not public"},
		{"6to4 of a private one", Options{AllowHTTP: true}, "http://[2002:a00:5::1]/", "k", "", "is not public"},
		{"site-local", Options{AllowHTTP: true}, "http://[fec0::1]/", "k", "", "is not public"},
		{"protocol assignments", Options{AllowHTTP: true}, "http://192.0.0.192/", "k", "", "is not public"},
		{"benchmarks", Options{AllowHTTP: true}, "http://198.18.0.1/", "k", "", "is not public"},
		{"reserved", Options{AllowHTTP: true}, "http://240.0.0.1/", "k", "", "is not public"},
		{"file", local, "file:///etc/passwd", "k", "", "is no URL"},
		{"no URL", local, "z@example.com", "k", "", "is no URL"},
		{"no key", local, srv.URL, "", "", "the idempotency key is missing"},
		{"large", Options{AllowHTTP: true, AllowPrivate: true, MaxBody: 3}, srv.URL, "k", "1234", "the body has 4 bytes; allowed are 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := client(t, tt.o).Post(t.Context(), tt.url, tt.key, []byte(tt.body))
			if outcome(err) != "permanent" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.215.14": true, "2600:1f18::1": true, "64:ff9b::5db8:d70e": true, "::ffff:93.184.215.14": true,
		"64:ff9b::7f00:1": false, "64:ff9b::a00:5%eth0": false, "fd00:ec2::254": false, "fe80::1": false, "::": false, "0.0.0.1": false, "::7f00:1": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: public %v, want %v", address, got, want)
		}
	}
}

// An error does not show where a redirect that cannot be read leads.
func TestRedirectThatIsNoURL(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://a b/?token=secret")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	err := client(t, local).Post(t.Context(), srv.URL, "k", nil)
	if outcome(err) != "permanent" || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "redirect") {
		t.Error(err)
	}
}

// A call without an answer is tried again.
func TestNoAnswer(t *testing.T) {
	hold := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(hold)
	o := local
	o.Timeout = time.Millisecond
	if err := client(t, o).Post(t.Context(), srv.URL, "k", nil); outcome(err) != "again" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client(t, local).Post(ctx, srv.URL, "k", nil); outcome(err) != "again" || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := client(t, local).Post(t.Context(), "http://127.0.0.1:1", "k", nil); outcome(err) != "again" {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	_, err := New(Options{Timeout: -1, MaxBody: -1})
	for _, want := range []string{"Options.Timeout is -1ns", "Options.MaxBody is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
