package awsclient

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// The error of a missing table names the endpoint and its setting.
func TestNoTable(t *testing.T) {
	const advice = ": correct its name, or the endpoint, the Region or the account, or create it"
	for _, tt := range []struct {
		endpoint *string
		names    []Names
		want     string
	}{
		{nil, nil, "there is no such table in Region eu-west-1" + advice},
		{nil, []Names{{Region: "AWS_REGION"}}, "there is no such table in Region eu-west-1 (set by AWS_REGION)" + advice},
		{new("http://127.0.0.1:8000"), []Names{{Endpoint: "other"}, {Endpoint: "aws.endpoints", Region: "aws.region"}},
			"there is no such table at http://127.0.0.1:8000 (set by aws.endpoints), Region eu-west-1 (set by aws.region)" + advice},
	} {
		cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: tt.endpoint}
		for _, n := range tt.names {
			cfg = Named(cfg, n)
		}
		of := errors.New("ResourceNotFoundException")
		if err := NoTable(cfg, of); err.Error() != tt.want || !errors.Is(err, of) {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}

// Configurations that are made of one another do not share names.
func TestNamedCopies(t *testing.T) {
	base := Named(aws.Config{Region: "eu-west-1"}, Names{Region: "base"})
	one, two := Named(base, Names{Region: "one"}), Named(base, Names{Region: "two"})
	if a, b, c := Place(base), Place(one), Place(two); a != "in Region eu-west-1 (set by base)" || b != "in Region eu-west-1 (set by one)" || c != "in Region eu-west-1 (set by two)" {
		t.Error(a, b, c)
	}
}

func TestRegionName(t *testing.T) {
	for _, tt := range []struct{ set, want string }{{"AWS_REGION", "AWS_REGION"}, {"AWS_DEFAULT_REGION", "AWS_DEFAULT_REGION"}, {"", "the AWS profile"}} {
		if got := RegionName(func(name string) string {
			if name == tt.set {
				return "x"
			}
			return ""
		}); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.set, got, tt.want)
		}
	}
}
