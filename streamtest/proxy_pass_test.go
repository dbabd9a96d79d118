package streamtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What the proxy is not told to spoil passes as it is.
func TestProxyPassesThrough(t *testing.T) {
	zipped := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, s)
		w.Close()
		return b.String()
	}
	var seen string
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = fmt.Sprintf("%s %s %s length %d encoding %q accept %q mine %q body %q", r.Method, r.RequestURI, r.Host, r.ContentLength,
			r.Header.Get("Content-Encoding"), r.Header.Get("Accept-Encoding"), r.Header["X-Mine"], body)
		switch r.URL.Path {
		case "/known":
			io.WriteString(w, "known")
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, zipped("hello"))
		case "/chunked":
			w.Header().Set("Trailer", "X-Sum")
			io.WriteString(w, "chun")
			http.NewResponseController(w).Flush()
			io.WriteString(w, "ked")
			w.Header().Set("X-Sum", "7")
		case "/none":
			w.Header()["X-Two"] = []string{"a", "b"}
			w.WriteHeader(http.StatusNoContent)
		case "/missing":
			http.NotFound(w, r)
		case "/broken":
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	p, c := o.through(t)
	p.Fail(ProxyFault{Drop: true, Op: "Other"}) // looked at, and not for these
	host := strings.TrimPrefix(p.URL(), "http://")
	for _, tt := range []struct {
		method, path string
		body         io.Reader
		header       http.Header
		seen, want   string
	}{
		{"GET", "/known?a=%2F&b", nil, http.Header{"X-Mine": {"1", "2"}},
			`GET /known?a=%2F&b ` + host + ` length 0 encoding "" accept "" mine ["1" "2"] body ""`, "200 length 5 known"},
		{"POST", "/known", strings.NewReader("abc"), nil,
			`POST /known ` + host + ` length 3 encoding "" accept "" mine [] body "abc"`, "200 length 5 known"},
		{"POST", "/chunked", io.MultiReader(strings.NewReader("a"), strings.NewReader("b")), nil,
			`POST /chunked ` + host + ` length -1 encoding "" accept "" mine [] body "ab"`, "200 length -1 chunked map[X-Sum:[7]]"},
		{"POST", "/gzip", strings.NewReader(zipped("hi")), http.Header{"Content-Encoding": {"gzip"}, "Accept-Encoding": {"gzip"}},
			fmt.Sprintf(`POST /gzip %s length %d encoding "gzip" accept "gzip" mine [] body %q`, host, len(zipped("hi")), zipped("hi")),
			fmt.Sprintf("200 length %d %s", len(zipped("hello")), zipped("hello"))},
		{"DELETE", "/none", nil, nil, `DELETE /none ` + host + ` length 0 encoding "" accept "" mine [] body ""`, "204 length 0 [a b]"},
		{"HEAD", "/known", nil, nil, `HEAD /known ` + host + ` length 0 encoding "" accept "" mine [] body ""`, "200 length 5 "},
		{"GET", "/missing/a%2Fb", nil, nil, `GET /missing/a%2Fb ` + host + ` length 0 encoding "" accept "" mine [] body ""`, "200 length 0 "},
		{"GET", "/missing", nil, nil, `GET /missing ` + host + ` length 0 encoding "" accept "" mine [] body ""`, "404 length 19 404 page not found\n"},
		{"POST", "/broken", nil, nil, `POST /broken ` + host + ` length 0 encoding "" accept "" mine [] body ""`, "200 length 10 half unexpected EOF"},
	} {
		t.Run(tt.method+tt.path, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, p.URL()+tt.path, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range tt.header {
				req.Header[k] = v
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			got := fmt.Sprintf("%d length %d %s", resp.StatusCode, resp.ContentLength, body)
			if resp.Trailer != nil {
				got += fmt.Sprint(" ", resp.Trailer)
			}
			if two := resp.Header["X-Two"]; two != nil {
				got += fmt.Sprint(two)
			}
			if err != nil {
				got += " " + err.Error()
			}
			wantText(t, "seen", seen, tt.seen)
			wantText(t, "answer", got, tt.want)
		})
	}
}

// An answer arrives as it is written, not when it is complete.
func TestProxyStreams(t *testing.T) {
	read := make(chan struct{})
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "first")
		http.NewResponseController(w).Flush()
		<-read
		io.WriteString(w, "second")
	})
	p, c := o.through(t)
	resp, err := c.Get(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	close(read)
	rest, err := io.ReadAll(resp.Body)
	wantText(t, "answer", fmt.Sprint(string(first), " ", string(rest), " ", err), "first second <nil>")
}
