package daemon

import (
	"log/slog"
	"testing"

	"github.com/sluicehq/sluice/internal/awsclient"
)

// An error names an endpoint with the setting behind it. If a program set the endpoint,
// the error names no variable.
func TestPlaceIsSaidWithWhatHasSetIt(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	env := func(name string) string { return map[string]string{"AWS_REGION": "eu-west-1"}[name] }
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{}, "in Region eu-west-1 (set by AWS_REGION)"},
		{Options{Region: "us-east-1"}, "in Region us-east-1"},
		{Options{Region: "us-east-1", RegionName: "aws.region"}, "in Region us-east-1 (set by aws.region)"},
		{Options{Endpoint: "http://h:1"}, "at http://h:1 (set by --endpoint-dynamodb (SLUICE_ENDPOINT_DYNAMODB)), Region eu-west-1 (set by AWS_REGION)"},
		{Options{Endpoint: "http://h:1", EndpointName: "aws.endpoints"}, "at http://h:1 (set by aws.endpoints), Region eu-west-1 (set by AWS_REGION)"},
	} {
		services, _, err := loadAWS(t.Context(), env, tt.o, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := awsclient.Place(services("dynamodb")); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
