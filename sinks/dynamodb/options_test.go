package dynamodb

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOptionsThatAreWrongAreNamed(t *testing.T) {
	_, err := New(aws.Config{Region: "us-east-1"}, Options{
		InFlight: -1, Timeout: -1, Attempts: -1, Backoff: -time.Second,
		Budget: map[string]float64{"slow": 0, "odd": math.NaN(), "fine": 0.5},
		Keys:   map[string][]string{"none": {}, "twice": {"pk", "pk"}, "many": {"a", "b", "c"}, "empty": {""}, "good": {"pk", "sk"}},
	})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{"InFlight", "Timeout", "Attempts", "Backoff", `"slow" is 0`, `"odd" is NaN`, `"none"`, `"twice"`, `"many"`, `"empty"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing about %s in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "fine") || strings.Contains(err.Error(), "good") {
		t.Error(err)
	}
	if _, err := New(aws.Config{}, Options{}); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Error(err)
	}
}
