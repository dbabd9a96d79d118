//go:build integration

package streamtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

// An Index takes and refuses what OpenSearch does, write by write.
func TestIndexIsLikeOpenSearch(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		name := fmt.Sprintf("streamtest-%x", rand.Uint64())
		ask(t, "PUT", url+"/"+name, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"gc_deletes":"1h"}}`)
		defer ask(t, "DELETE", url+"/"+name, "")
		x := NewIndex()
		r := rand.New(rand.NewPCG(1, 7))
		for i := range 400 {
			op := document.Op{Action: document.Put, Index: name, ID: []string{"a", "b/ c", "é"}[r.IntN(3)]}
			if r.IntN(3) == 0 {
				op.Routing = "r"
			}
			if op.Fence = document.Fence(r.IntN(3)); op.Fence != document.NoFence {
				op.Version = int64(i/20) + r.Int64N(4)
			}
			if r.IntN(3) == 0 {
				op.Action = document.Delete
			} else {
				op.Body = fmt.Appendf(nil, `{"n":%d}`, i)
			}
			refused := len(x.Refused())
			if err := x.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			status := bulk(t, url, op)
			if is, want := len(x.Refused()) > refused, status == 409; is != want || status >= 400 && status != 409 && status != 404 {
				t.Fatalf("write %d, %+v: refused %v, OpenSearch says %d", i, op, is, status)
			}
			if diff := cmp.Diff(found(t, url, op.Ref()), x.Get(op.Ref())); diff != "" {
				t.Fatalf("write %d, %+v: OpenSearch (-) and Index (+) have\n%s", i, op, diff)
			}
		}
		if n := len(x.Refused()); n < 50 || n > 350 {
			t.Errorf("%d of 400 writes were refused", n)
		}
	})
}

// bulk writes one document and returns its status.
func bulk(t *testing.T, url string, op document.Op) int {
	meta := map[string]any{"_index": op.Index, "_id": op.ID}
	if op.Routing != "" {
		meta["routing"] = op.Routing
	}
	if op.Fence != document.NoFence {
		meta["version"], meta["version_type"] = op.Version, op.Fence.String()
	}
	line, err := json.Marshal(map[string]any{op.Action.String(): meta})
	if err != nil {
		t.Fatal(err)
	}
	body := string(line) + "\n"
	if op.Action == document.Put {
		body += string(op.Body) + "\n"
	}
	var answer struct {
		Items []map[string]struct{ Status int }
	}
	if err := json.Unmarshal(ask(t, "POST", url+"/_bulk", body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Items[0][op.Action.String()].Status
}

// found reads a document.
func found(t *testing.T, url string, ref document.Ref) document.Doc {
	query, err := json.Marshal(map[string]any{"docs": []any{map[string]any{"_index": ref.Index, "_id": ref.ID}}})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Docs []struct {
			Found   bool
			Version int64           `json:"_version"`
			SeqNo   int64           `json:"_seq_no"`
			Term    int64           `json:"_primary_term"`
			Routing string          `json:"_routing"`
			Source  json.RawMessage `json:"_source"`
		}
	}
	if err := json.Unmarshal(ask(t, "POST", url+"/_mget", string(query)), &answer); err != nil {
		t.Fatal(err)
	}
	d := answer.Docs[0]
	if !d.Found {
		return document.Doc{Ref: ref}
	}
	return document.Doc{Ref: document.Ref{Index: ref.Index, ID: ref.ID, Routing: d.Routing}, Found: true, Version: d.Version,
		Revision: document.Revision{SeqNo: d.SeqNo, PrimaryTerm: d.Term}, Source: bytes.TrimSpace(d.Source)}
}

func ask(t *testing.T, method, url, body string) []byte {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %s, %v", method, url, resp.Status, answer, err)
	}
	http.DefaultClient.CloseIdleConnections()
	return answer
}
