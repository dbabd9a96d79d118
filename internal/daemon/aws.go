package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/sluicehq/sluice/internal/awsclient"
)

// loadAWS returns the configuration of each service. It checks the endpoints in
// the environment now, to report a mistake at the start.
func loadAWS(ctx context.Context, env func(string) string, o Options, logger *slog.Logger) (func(service string) aws.Config, error) {
	// The SDK logs single calls; their failures are also returned as errors.
	log := logging.LoggerFunc(func(level logging.Classification, format string, args ...any) {
		logger.Debug("AWS SDK: "+fmt.Sprintf(format, args...), "classification", string(level))
	})
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(log), config.WithRegion(o.Region)) // "" is the environment's
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	var errs []error
	for _, name := range []string{
		endpointVar("dynamodb"), endpointVar("sqs"),
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "AWS_ENDPOINT_URL_SQS",
	} {
		if url := env(name); url != "" {
			if err := checkEndpoint(url); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &UsageError{err}
	}
	region := o.RegionName
	if o.Region == "" { // else a program has set it, and may say by what
		region = cmp.Or(region, awsclient.RegionName(env))
	}
	return func(service string) aws.Config {
		c := awsclient.Named(cfg, awsclient.Names{Region: region})
		url := env(endpointVar(service))
		if service == "dynamodb" {
			url = cmp.Or(o.Endpoint, url)
			c = awsclient.Named(c, awsclient.Names{Region: region, Endpoint: endpointName(o)})
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
