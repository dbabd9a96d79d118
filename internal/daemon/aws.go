package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/awsclient"
)

// loadAWS returns the configuration of each service, and accounts for those of sinks.
// It checks the endpoints in the environment now, to report a mistake at the start.
func loadAWS(ctx context.Context, env func(string) string, o Options, logger *slog.Logger) (func(service string) aws.Config, *accounts.Accounts, error) {
	// The SDK logs single calls; their failures are also returned as errors.
	log := logging.LoggerFunc(func(level logging.Classification, format string, args ...any) {
		logger.Debug("AWS SDK: "+fmt.Sprintf(format, args...), "classification", string(level))
	})
	load := []func(*config.LoadOptions) error{config.WithLogger(log), config.WithRegion(o.Region), config.WithSharedConfigProfile(o.AWS.Profile)} // "" is the environment's
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, nil, fmt.Errorf("AWS configuration: %w", err)
	}
	var errs []error
	for _, name := range []string{
		endpointVar("dynamodb"), endpointVar("sqs"), endpointVar("sts"),
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_STS",
	} {
		if url := env(name); url != "" {
			if err := checkEndpoint(url); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, &UsageError{err}
	}
	region := o.RegionName
	if o.Region == "" { // else a program has set it, and may say by what
		region = cmp.Or(region, awsclient.RegionName(env))
	}
	of := func(service string) aws.Config {
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
	}
	all := accounts.New(of("sts"), Profiles(ctx, load...))
	return all.Services(of, o.AWS, o.Source), all, nil
}

// Profiles returns a function that loads the credentials of a profile.
func Profiles(ctx context.Context, options ...func(*config.LoadOptions) error) func(name string) (aws.CredentialsProvider, error) {
	return func(name string) (aws.CredentialsProvider, error) {
		cfg, err := config.LoadDefaultConfig(context.WithoutCancel(ctx), append(slices.Clip(options), config.WithSharedConfigProfile(name))...)
		if err != nil {
			return nil, fmt.Errorf("%w: correct the name, or the file of AWS_CONFIG_FILE", err)
		}
		return cfg.Credentials, nil
	}
}

func endpointVar(service string) string {
	return "SLUICE_ENDPOINT_" + strings.ToUpper(strings.ReplaceAll(service, "-", "_"))
}
