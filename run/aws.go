package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// loadAWS returns the configuration of each service. The endpoints that the
// environment names are checked now, so that a mistake is told at the start.
func loadAWS(ctx context.Context, env func(string) string, endpoints map[string]string) (func(service string) aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	var errs []error
	for _, service := range []string{"dynamodb", "sqs"} {
		if url := env(endpointVar(service)); url != "" {
			if err := checkEndpoint(url); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", endpointVar(service), err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &UsageError{err}
	}
	return func(service string) aws.Config {
		c := cfg.Copy()
		url := endpoints[service]
		if url == "" {
			url = env(endpointVar(service))
		}
		if url != "" {
			c.BaseEndpoint = &url
		}
		return c
	}, nil
}

func endpointVar(service string) string {
	return "SLUICE_ENDPOINT_" + strings.ToUpper(strings.ReplaceAll(service, "-", "_"))
}
