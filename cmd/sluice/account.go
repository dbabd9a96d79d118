package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
)

// account has the flags that replace fields of aws at the top of the file.
type account struct{ region, profile, role string }

// withoutAccount are the commands that call no service of AWS, or have its settings
// from somebody else.
var withoutAccount = []string{"init", "status", "health", "top", "reload", "gaps", "park", "lambda", "version", "completion", "help"}

// addAccount adds the flags to the commands that call AWS.
func (c *cli) addAccount(commands []*cobra.Command) {
	for _, cmd := range commands {
		if slices.Contains(withoutAccount, cmd.Name()) {
			continue
		}
		fs := cmd.PersistentFlags()
		fs.StringVar(&c.own.region, "region", "", "`Region` of AWS, in place of aws.region")
		fs.StringVar(&c.own.profile, "profile", "", "`profile` of AWS credentials, in place of aws.profile and aws.assumeRole")
		fs.StringVar(&c.own.role, "role-arn", "", "`ARN` of the role to assume, in place of aws.assumeRole and aws.profile")
	}
}

// top returns how to reach the account of the process: by flags, else by the file.
func (c *cli) top(cfg *config.Config) (at accounts.Access, err error) {
	at = cmp.Or(cfg, new(config.Config)).TopAccess()
	at.Region = cmp.Or(c.own.region, at.Region)
	switch {
	case c.own.profile != "" && c.own.role != "":
		return at, usage("--profile and --role-arn: want one; a profile may name a role itself (role_arn)")
	case c.own.profile != "":
		at.Profile, at.Role = c.own.profile, accounts.Role{}
	case c.own.role != "":
		if !config.IsRole(c.own.role) {
			return at, usage("--role-arn: %q is not the ARN of a role; want arn:aws:iam::ACCOUNT:role/NAME", c.own.role)
		}
		at.Field, at.Profile, at.Role = "--role-arn", "", accounts.Role{ARN: c.own.role}
	}
	return at, nil
}

// reach has a daemon reach the accounts of the file, which may be nil.
func (c *cli) reach(o *daemon.Options, cfg *config.Config) (err error) {
	if o.AWS, err = c.top(cfg); err != nil {
		return err
	}
	o.Region, o.RegionName = o.AWS.Region, c.regionName(cfg)
	cfg = cmp.Or(cfg, new(config.Config))
	o.Source, o.Accounts = cfg.SourceAccess(), append([]accounts.Access{o.AWS}, cfg.Accounts()[1:]...)
	return nil
}

// accounts returns the configurations of services, and the accounts for sinks: the
// environment's, with the settings of the file (which may be nil), overridden by
// SLUICE_ENDPOINT_<SERVICE> and flags. "dynamodb" is for the tables of source,
// [accounts.State] for others.
func (c *cli) accounts(ctx context.Context, cfg *config.Config) (func(service string) aws.Config, *accounts.Accounts, error) {
	services, all, err := c.accountsMaybe(ctx, cfg)
	if err == nil && services("").Region == "" {
		path, _ := c.path()
		return nil, nil, fmt.Errorf("no Region: set aws.region in %s, or AWS_REGION, or region in the profile of AWS_PROFILE", path)
	}
	return services, all, err
}

// accountsMaybe is accounts for a command without AWS calls: it needs no Region.
func (c *cli) accountsMaybe(ctx context.Context, cfg *config.Config) (func(service string) aws.Config, *accounts.Accounts, error) {
	top, err := c.top(cfg)
	if err != nil {
		return nil, nil, err
	}
	cfg = cmp.Or(cfg, new(config.Config))
	base, err := awsconfig.LoadDefaultConfig(ctx, quiet, awsconfig.WithRegion(top.Region), awsconfig.WithSharedConfigProfile(top.Profile))
	if err != nil {
		return nil, nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if err := awsclient.ExposedVariable(c.env); err != nil {
		return nil, nil, usage("%w", err)
	}
	own := func(service string) aws.Config {
		one := base.Copy()
		url := cmp.Or(c.env(endpointVar(service)), cfg.AWS.Endpoints[service])
		if url != "" {
			one.BaseEndpoint = &url
		}
		return awsclient.Named(one, awsclient.Names{Endpoint: c.endpointName(service, cfg), Region: c.regionName(cfg)})
	}
	all := accounts.New(own("sts"), daemon.Profiles(ctx, quiet))
	return all.Services(own, top, cfg.SourceAccess()), all, nil
}

// quiet drops the SDK's log, because it also returns the errors.
func quiet(o *awsconfig.LoadOptions) error {
	o.Logger = logging.Nop{}
	return nil
}

func endpointVar(service string) string { return "SLUICE_ENDPOINT_" + strings.ToUpper(service) }

// endpointName returns the name of the setting that set the endpoint of a service;
// "" if neither the file nor a variable of Sluice sets it.
func (c *cli) endpointName(service string, cfg *config.Config) string {
	switch {
	case c.env(endpointVar(service)) != "":
		return endpointVar(service)
	case cfg != nil && cfg.AWS.Endpoints[service] != "":
		return "aws.endpoints." + service + " of the configuration"
	}
	return ""
}

// regionName returns the name of the setting that set the Region.
func (c *cli) regionName(cfg *config.Config) string {
	if c.own.region != "" {
		return "--region"
	}
	if cfg != nil && cfg.AWS.Region != "" {
		return "aws.region of the configuration"
	}
	return awsclient.RegionName(c.env)
}
