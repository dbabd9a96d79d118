package transitgateway

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/run"
)

func TestConnectSaysWhatIsWrong(t *testing.T) {
	setup := func(env map[string]string) run.Setup {
		return run.Setup{
			Lambda: true, // makes no call
			Env:    func(name string) string { return env[name] }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			AWS: func(string) aws.Config { return aws.Config{Region: "eu-west-1"} },
		}
	}
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "TGW_QUEUE is not set"},
		{map[string]string{"TGW_QUEUE": "q.fifo"}, "TGW_QUEUE=q.fifo is a FIFO queue"},
		{map[string]string{"TGW_QUEUE": "q", "TGW_OPENSEARCH": "localhost"}, "TGW_OPENSEARCH"},
		{map[string]string{"TGW_QUEUE": "q", "TGW_OPENSEARCH_SERVICE": "s3"}, "TGW_OPENSEARCH"},
		{map[string]string{"TGW_QUEUE": "q", "TGW_INDEX": "A B"}, "Index"},
	} {
		if _, err := Connect("x-")(t.Context(), setup(tt.env)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v", tt.env, err)
		}
	}
	m, err := Connect("x-")(t.Context(), setup(map[string]string{"TGW_QUEUE": "q", "TGW_OPENSEARCH": "http://127.0.0.1:1,http://127.0.0.1:2"}))
	if err != nil || len(m.Routes()) != 5 {
		t.Errorf("%v", err)
	}
	if _, err := NewRouter(Deps{}); err == nil {
		t.Error("routes on nothing")
	}
}
