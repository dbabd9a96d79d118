package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/audit"
)

// What an audit that failed has counted is no result; what it found is.
func TestReportOfFailure(t *testing.T) {
	for _, tt := range []struct {
		result audit.Result
		err    error
		json   bool
		want   string
	}{
		{audit.Result{Items: 250, Documents: 250}, errors.New("refused"), false, ""},
		{audit.Result{Items: 250, Documents: 250, Missing: 1}, errors.New("refused"), false, "so far: 250 items, 250 documents, 0 listed: 1 missing"},
		{audit.Result{Items: 250}, errors.New("refused"), true, `"clean":false,"error":"refused"`},
		{audit.Result{Items: 250}, nil, false, "250 items"},
		{audit.Result{Items: 1, Documents: 1}, nil, false, "1 item, 1 document, "},
	} {
		var out strings.Builder
		(&report{w: &out, json: tt.json}).result(tt.result, tt.err)
		if !strings.Contains(out.String(), tt.want) || tt.want == "" && out.Len() > 0 {
			t.Errorf("%+v, %v: %q, want %q", tt.result, tt.err, &out, tt.want)
		}
	}
}
