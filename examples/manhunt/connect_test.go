package manhunt

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/run"
)

// A FIFO queue takes no delay: each message would fail by itself.
func TestConnectRefusesFIFO(t *testing.T) {
	for _, queue := range []string{"attempts.fifo", "https://sqs.eu-west-1.amazonaws.com/123456789012/attempts.fifo"} {
		_, err := Connect(run.Setup{AWS: func(string) aws.Config { return aws.Config{Region: "us-east-1"} }, Env: func(name string) string {
			return map[string]string{"MANHUNT_QUEUE": queue, "MANHUNT_WATCH_QUEUE": "watches"}[name]
		}}, nil)
		if err == nil || !strings.Contains(err.Error(), "MANHUNT_QUEUE") || !strings.Contains(err.Error(), "standard queue") {
			t.Errorf("%s: %v", queue, err)
		}
	}
}

// The watchdog needs its own queue: a problem of the queue of attempts must not stop
// it.
func TestConnectWantsTwoQueues(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"MANHUNT_WATCH_QUEUE is not set": {"MANHUNT_QUEUE": "attempts"},
		"are the same queue":             {"MANHUNT_QUEUE": "attempts", "MANHUNT_WATCH_QUEUE": "attempts"},
	} {
		_, err := Connect(run.Setup{AWS: func(string) aws.Config { return aws.Config{Region: "us-east-1"} }, Env: func(name string) string { return env[name] }}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
