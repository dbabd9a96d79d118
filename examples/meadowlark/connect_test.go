package meadowlark

import (
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/run"
)

func TestConnect(t *testing.T) {
	base := map[string]string{"MEADOWLARK_ALERTS": "alerts", "MEADOWLARK_CHECKS": "checks"}
	for _, tt := range []struct {
		env    map[string]string
		tables []string
		err    string // "" is none
	}{
		{nil, nil, ""},
		{nil, []string{"mine"}, ""},
		{nil, []string{"a", "b"}, "want one in --table (SLUICE_TABLES), not 2: a, b"},
		{map[string]string{"MEADOWLARK_ALERTS": ""}, nil, "MEADOWLARK_ALERTS is not set"},
		{map[string]string{"MEADOWLARK_CHECKS": ""}, nil, "MEADOWLARK_CHECKS is not set"},
		{map[string]string{"MEADOWLARK_CHECKS": "checks.fifo"}, nil, "want a standard queue"},
		{map[string]string{"MEADOWLARK_OPENSEARCH": "here"}, nil, "URLs[0] is no URL"},
		{map[string]string{"MEADOWLARK_OPENSEARCH": "http://a:9200,https://b"}, nil, ""},
		{map[string]string{"MEADOWLARK_OPENSEARCH_USER": "me"}, nil, "Username and Password go together"},
		{map[string]string{"MEADOWLARK_OPENSEARCH_SIGN": "ec2"}, nil, `Service is "ec2"`},
	} {
		env := maps.Clone(base)
		maps.Copy(env, tt.env)
		cfg := aws.Config{Region: "eu-west-1"}
		r, err := Connect(run.Setup{
			AWS: func(string) aws.Config { return cfg }, Tables: tt.tables,
			Env: func(name string) string { return env[name] },
		})
		switch {
		case tt.err == "" && (err != nil || len(r.Routes()) != 6):
			t.Errorf("%v %v: %v", tt.env, tt.tables, err)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%v %v: %v, want %s", tt.env, tt.tables, err, tt.err)
		}
	}
}
