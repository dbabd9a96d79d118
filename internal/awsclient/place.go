package awsclient

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Names are the names of the settings, such as variables, that set a
// configuration's endpoint and Region, for messages. They travel in the
// ConfigSources.
type Names struct{ Endpoint, Region string }

// Named returns cfg with names.
func Named(cfg aws.Config, n Names) aws.Config {
	cfg = cfg.Copy()
	cfg.ConfigSources = append(cfg.ConfigSources[:len(cfg.ConfigSources):len(cfg.ConfigSources)], n)
	return cfg
}

// NamesOf returns the names that cfg has.
func NamesOf(cfg aws.Config) (n Names) {
	for _, source := range cfg.ConfigSources {
		if named, ok := source.(Names); ok {
			n = named
		}
	}
	return n
}

// Place describes the place of cfg, and the setting behind it if known: "in Region
// us-east-1 (set by AWS_REGION)".
func Place(cfg aws.Config) string {
	n := NamesOf(cfg)
	region := "Region " + cfg.Region + setBy(n.Region)
	if cfg.BaseEndpoint == nil {
		return "in " + region
	}
	return "at " + *cfg.BaseEndpoint + setBy(n.Endpoint) + ", " + region
}

func setBy(name string) string {
	if name == "" {
		return ""
	}
	return " (set by " + name + ")"
}

// NoTable returns the error for a missing table, with the place and advice instead
// of the service's text.
func NoTable(cfg aws.Config, err error) error {
	return &missing{fmt.Sprintf("there is no such table %s: correct its name, or the endpoint, the Region or the account, or create it", Place(cfg)), err}
}

type missing struct {
	text string
	err  error
}

func (e *missing) Error() string { return e.text }
func (e *missing) Unwrap() error { return e.err }

// ErrNoRegion says where a program looks for its Region.
var ErrNoRegion = errors.New("no AWS Region: set AWS_REGION, or region in the profile of AWS_PROFILE")

// RegionName returns the name of the setting that set the Region of a
// configuration from the environment.
func RegionName(env func(string) string) string {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if env(name) != "" {
			return name
		}
	}
	return "the AWS profile"
}
