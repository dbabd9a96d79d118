// Package accounts makes the AWS configurations of clients that work in another
// account or Region than the process. The sources and sinks of one daemon may be in
// several.
package accounts

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/awserror"
)

// DefaultSession is the session name of a role without one.
const DefaultSession = "sluice"

// Access says how clients reach their account. What it leaves out is that of the
// configuration around it. Profile and Role exclude each other.
type Access struct {
	Field string // name of the setting, such as sinks.calls.sqs.aws

	Region, Profile, Endpoint string

	Role Role
}

// Role is a role to assume; without ARN none.
type Role struct{ ARN, ExternalID, SessionName string }

// Accounts makes configurations. Clients of equal roles share credentials, which the
// SDK renews. It is safe for concurrent use.
type Accounts struct {
	own     aws.Config
	profile func(name string) (aws.CredentialsProvider, error)

	mu    sync.Mutex
	roles map[Role]aws.CredentialsProvider
}

// New returns Accounts. own is the configuration of STS, with the credentials that
// every role is assumed with. profile returns the credentials of a profile; nil: no
// profile has any.
func New(own aws.Config, profile func(name string) (aws.CredentialsProvider, error)) *Accounts {
	if profile == nil {
		profile = func(string) (aws.CredentialsProvider, error) {
			return nil, errors.New("this program reads no profiles")
		}
	}
	return &Accounts{own: own, profile: profile, roles: map[Role]aws.CredentialsProvider{}}
}

// Within returns outer with the settings of at. It makes no call, and does not read
// the profile: the first request of a client does.
func (a *Accounts) Within(outer aws.Config, at Access) aws.Config {
	cfg, names := outer.Copy(), awsclient.NamesOf(outer)
	if at.Region != "" {
		cfg.Region, names.Region = at.Region, at.Field+".region"
	}
	if at.Endpoint != "" {
		cfg.BaseEndpoint, names.Endpoint = &at.Endpoint, at.Field+".endpoint"
		cfg.ConfigSources = append([]any{endpoint(at.Endpoint)}, cfg.ConfigSources...)
	}
	switch {
	case at.Role.ARN != "":
		cfg.Credentials = blamed{a.role(at.Role), func(err error) error { return at.denied(err) }}
	case at.Profile != "":
		cfg.Credentials = blamed{&lazy{load: func() (aws.CredentialsProvider, error) { return a.profile(at.Profile) }}, func(err error) error {
			return &awserror.CredentialsError{What: at.Field + ".profile: cannot use profile " + at.Profile, Err: err}
		}}
	}
	return awsclient.Named(cfg, names)
}

// State is the service of a state table: DynamoDB in the account of the top.
const State = "state"

// Services returns the configuration of each service, made of those of the process.
// "dynamodb" is in the account of source, "sts" in that of the process, and all others
// in that of top. own has the profile and Region of top.
func (a *Accounts) Services(own func(service string) aws.Config, top, source Access) func(service string) aws.Config {
	top = Access{Field: top.Field, Role: top.Role}
	return func(service string) aws.Config {
		switch service {
		case "sts":
			return own(service)
		case State:
			return a.Within(own("dynamodb"), top)
		case "dynamodb":
			return a.Within(a.Within(own(service), top), source)
		}
		return a.Within(own(service), top)
	}
}

// endpoint wins over AWS_ENDPOINT_URL_<SERVICE>, which a client prefers to
// aws.Config.BaseEndpoint.
type endpoint string

// GetServiceBaseEndpoint is the method that the SDK's clients ask for.
func (e endpoint) GetServiceBaseEndpoint(context.Context, string) (string, bool, error) {
	return string(e), true, nil
}

// role returns the credentials of a role.
func (a *Accounts) role(r Role) aws.CredentialsProvider {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.roles[r] == nil {
		assume := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(a.own), r.ARN, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = cmp.Or(r.SessionName, DefaultSession)
			if r.ExternalID != "" {
				o.ExternalID = &r.ExternalID
			}
		})
		a.roles[r] = aws.NewCredentialsCache(assume, func(o *aws.CredentialsCacheOptions) {
			o.ExpiryWindow = time.Minute // a request on its way must not outlive them
		})
	}
	return a.roles[r]
}

// denied returns the error for a role that was not assumed, with what to do about it.
func (a Access) denied(err error) error {
	if call := (*smithy.OperationError)(nil); errors.As(err, &call) {
		err = call // without the cache's words
	}
	field := a.Field
	if !strings.HasPrefix(field, "--") { // else a flag has the role
		field += ".assumeRole"
	}
	e := &awserror.CredentialsError{What: field + ": cannot assume role " + a.Role.ARN, Err: err}
	switch awserror.Of(err) {
	case awserror.Denied:
		e.Do = "allow the caller in the role's trust policy, and sts:AssumeRole on the role in the caller's policy; if the trust policy asks for an external id, set externalId"
		if a.Role.ExternalID != "" {
			e.Do = "allow the caller, with this externalId, in the role's trust policy, and sts:AssumeRole on the role in the caller's policy"
		}
	case awserror.NotAccepted, awserror.NoCredentials:
		e.Do = "the role is assumed with the credentials of the process: " + awserror.Credentials(err)
	}
	return e
}

// blamed wraps the errors of a provider.
type blamed struct {
	aws.CredentialsProvider
	wrap func(error) error
}

func (b blamed) Retrieve(ctx context.Context) (aws.Credentials, error) {
	keys, err := b.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		err = b.wrap(err)
	}
	return keys, err
}

// lazy loads a provider when it is needed, and again after an error.
type lazy struct {
	load func() (aws.CredentialsProvider, error)

	mu     sync.Mutex
	loaded aws.CredentialsProvider
}

func (l *lazy) Retrieve(ctx context.Context) (aws.Credentials, error) {
	l.mu.Lock()
	if l.loaded == nil {
		p, err := l.load()
		if err != nil {
			l.mu.Unlock()
			return aws.Credentials{}, err
		}
		l.loaded = p
	}
	p := l.loaded
	l.mu.Unlock()
	return p.Retrieve(ctx)
}

// Same reports whether the settings of both are equal, wherever they are.
func (a Access) Same(b Access) bool {
	a.Field, b.Field = "", ""
	return a == b
}

// String describes the settings of a for a person; "" if it has none.
func (a Access) String() string {
	var set []string
	for _, one := range []struct{ name, value string }{{"Region", a.Region}, {"profile", a.Profile}, {"role", a.Role.ARN}, {"endpoint", a.Endpoint}} {
		if one.value != "" {
			set = append(set, one.name+" "+one.value)
		}
	}
	if len(set) == 0 {
		return ""
	}
	return a.Field + ": " + strings.Join(set, ", ")
}
