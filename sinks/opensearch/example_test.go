package opensearch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// A document has the version of its item: an older write changes nothing. A document
// that the mapping refuses is a permanent failure with its reason.
func Example() {
	// In place of a cluster.
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("%s", body)
		fmt.Fprint(w, `{"errors":true,"items":[
			{"index":{"_index":"searches","_id":"s-1","status":201}},
			{"delete":{"_index":"searches","_id":"s-2","status":409}},
			{"index":{"_index":"searches","_id":"s-3","status":400,"error":{"type":"mapper_parsing_exception","reason":"failed to parse field [n]"}}}]}`)
	}))
	defer cluster.Close()

	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{cluster.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	sink, err := opensearch.New(client, opensearch.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	errs := sink.WriteAll(context.Background(), []document.Op{
		{Action: document.Put, Index: "searches", ID: "s-1", Fence: document.Newer, Version: 7, Body: []byte(`{"n":1}`)},
		{Action: document.Delete, Index: "searches", ID: "s-2", Fence: document.Newer, Version: 3},
		{Action: document.Put, Index: "searches", ID: "s-3", Body: []byte(`{"n":"x"}`)},
	})
	for _, err := range errs {
		fmt.Println(err, sluice.IsPermanent(err))
	}
	var e *document.Error
	if errors.As(errs[2], &e) {
		fmt.Println(e.Ref.ID, e.Status)
	}
	// Output:
	// {"index":{"_index":"searches","_id":"s-1","version":7,"version_type":"external"}}
	// {"n":1}
	// {"delete":{"_index":"searches","_id":"s-2","version":3,"version_type":"external"}}
	// {"index":{"_index":"searches","_id":"s-3"}}
	// {"n":"x"}
	// <nil> false
	// <nil> false
	// index of a document in "searches": status 400: mapper_parsing_exception: failed to parse field [n] true
	// s-3 400
}
