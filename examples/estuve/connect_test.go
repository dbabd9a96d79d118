package estuve

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/run"
)

func TestConnectSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		tables []string
		env    map[string]string
		want   string
	}{
		{[]string{"points", "orders"}, nil, `no table "orders": with ESTUVE_PREFIX="" those whose streams it reads are users, maps, points`},
		{[]string{"points"}, map[string]string{"ESTUVE_PREFIX": "x-"}, `no table "points": with ESTUVE_PREFIX="x-" those whose streams it reads are x-users, x-maps, x-points`},
		{nil, map[string]string{"ESTUVE_THRESHOLD": "many"}, `ESTUVE_THRESHOLD="many": want how many rows`},
		{nil, map[string]string{"ESTUVE_THRESHOLD": "-1"}, `ESTUVE_THRESHOLD="-1": want how many rows`},
		{nil, map[string]string{"ESTUVE_BUDGET": "0"}, `ESTUVE_BUDGET="0": want write units a second`},
		{nil, map[string]string{"ESTUVE_QUEUE": "cascades.fifo"}, `ESTUVE_QUEUE=cascades.fifo is a FIFO queue`},
	} {
		_, err := Connect(run.Setup{
			AWS:    func(string) aws.Config { return aws.Config{Region: "eu-west-1"} },
			Tables: tt.tables, Env: func(name string) string { return tt.env[name] },
		})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v", tt.env, err)
		}
	}
	r, err := Connect(run.Setup{
		AWS: func(string) aws.Config { return aws.Config{Region: "eu-west-1"} }, Tables: []string{"maps"},
		Env: func(name string) string {
			return map[string]string{"ESTUVE_QUEUE": "cascades", "ESTUVE_THRESHOLD": "0"}[name]
		},
	})
	if err != nil || len(r.Routes()) != 6 {
		t.Errorf("%v", err)
	}
}
