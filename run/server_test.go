package run

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProfilesAreForThisMachine(t *testing.T) {
	h := profiles()
	for _, tt := range []struct {
		from, path string
		code       int
		body       string
	}{
		{"127.0.0.1:999", "/debug/pprof/", 200, "goroutine"},
		{"[::1]:999", "/debug/pprof/goroutine?debug=1", 200, "goroutine profile"},
		{"127.0.0.1:999", "/debug/pprof/symbol", 200, "num_symbols"},
		{"10.0.0.7:999", "/debug/pprof/", 403, "profiles are served on the machine of the daemon only"},
		{"10.0.0.7:999", "/debug/pprof/cmdline", 403, "only"},
		{"nonsense", "/debug/pprof/heap", 403, "only"},
	} {
		r := httptest.NewRequest(http.MethodGet, tt.path, nil)
		r.RemoteAddr = tt.from
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%s from %s: %d %.80q, want %d and %q", tt.path, tt.from, w.Code, w.Body.String(), tt.code, tt.body)
		}
	}
}
