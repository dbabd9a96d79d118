package config

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"

	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/awsclient"
)

// Account is another account or Region. Set profile or assumeRole, or neither.
type Account struct {
	// Region.
	Region string `yaml:"region"`
	// Profile with the credentials.
	Profile string `yaml:"profile"`
	// Role to assume.
	AssumeRole *AssumeRole `yaml:"assumeRole"`
	// URL of the service.
	Endpoint string `yaml:"endpoint"`
}

// AssumeRole is a role.
type AssumeRole struct {
	// ARN of the role.
	ARN string `yaml:"arn" is:"required"`
	// External id that the role's trust policy asks for.
	ExternalID string `yaml:"externalId"`
	// Name of the session in CloudTrail. Default sluice.
	SessionName string `yaml:"sessionName" default:"sluice"`
}

// The characters are those of https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html.
// A repetition with a number would make the start of a function longer.
var (
	goodRole       = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$`)
	goodRegion     = regexp.MustCompile(`^[a-z0-9-]+$`)
	goodExternalID = regexp.MustCompile(`^[\w+=,.@:/-][\w+=,.@:/-]+$`)
	goodSession    = regexp.MustCompile(`^[\w+=,.@-][\w+=,.@-]+$`)
)

const longestSession = 64

// top returns the aws of the file as an Account.
func (c *Config) top() *Account {
	return &Account{Region: c.AWS.Region, Profile: c.AWS.Profile, AssumeRole: c.AWS.AssumeRole}
}

// placed is an Account and its path in the file.
type placed struct {
	path string
	*Account
}

// accounts returns every aws of the file, in the order of the reference.
func (c *Config) accounts() []placed {
	all := []placed{{"aws", c.top()}, {"source.aws", c.Source.AWS}}
	for _, name := range c.ofKind("sqs") {
		all = append(all, placed{join("sinks", name) + ".sqs.aws", c.Sinks[name].SQS.AWS})
	}
	for _, name := range c.ofKind("opensearch") {
		all = append(all, placed{join("sinks", name) + ".opensearch.aws", c.Sinks[name].OpenSearch.AWS})
	}
	for _, name := range c.ofKind("dynamodb") {
		all = append(all, placed{join("sinks", name) + ".dynamodb.aws", c.Sinks[name].DynamoDB.AWS})
	}
	return slices.DeleteFunc(all, func(p placed) bool { return p.Account == nil })
}

// Accounts returns every aws of the file. The first is the one at the top.
func (c *Config) Accounts() (all []accounts.Access) {
	for _, p := range c.accounts() {
		all = append(all, c.access(p.path, p.Account))
	}
	return all
}

// TopAccess returns the aws at the top.
func (c *Config) TopAccess() accounts.Access { return c.access("aws", c.top()) }

// SourceAccess returns source.aws.
func (c *Config) SourceAccess() accounts.Access { return c.access("source.aws", c.Source.AWS) }

// access returns an aws of the file, which may be nil.
func (c *Config) access(path string, a *Account) accounts.Access {
	at := accounts.Access{Field: path}
	if a == nil {
		return at
	}
	at.Region, at.Profile, at.Endpoint = a.Region, a.Profile, a.Endpoint
	if r := a.AssumeRole; r != nil {
		at.Role = accounts.Role{ARN: r.ARN, ExternalID: r.ExternalID, SessionName: cmp.Or(r.SessionName, accounts.DefaultSession)}
	}
	return at
}

// validateAccounts notes the mistakes of every aws.
func (c *Config) validateAccounts() {
	d := c.doc
	for _, p := range c.accounts() {
		if p.Profile != "" && p.AssumeRole != nil {
			d.add(p.path, "profile and assumeRole are both here; want one: the profile at the top assumes the roles of source and sinks, and a profile may name a role itself (role_arn)")
		}
		if p.Region != "" && !goodRegion.MatchString(p.Region) {
			d.add(p.path+".region", "%s is no Region, such as eu-west-1", d.show(p.path+".region", p.Region))
		}
		if p.Endpoint != "" {
			c.validateEndpoint(p.path+".endpoint", p.Endpoint)
		}
		if r, at := p.AssumeRole, p.path+".assumeRole"; r != nil {
			c.matches(at+".arn", r.ARN, goodRole, "the ARN of a role; want arn:aws:iam::ACCOUNT:role/NAME, with 12 digits for ACCOUNT")
			c.matches(at+".externalId", r.ExternalID, goodExternalID, "an external id; want two or more letters, digits and _+=,.@:/-")
			c.matches(at+".sessionName", r.SessionName, goodSession, "the name of a session; want 2 to 64 letters, digits and _+=,.@-")
			if len(r.SessionName) > longestSession {
				d.add(at+".sessionName", "it has %d characters, and the name of a session has %d at most", len(r.SessionName), longestSession)
			}
		}
	}
	for _, name := range c.ofKind("opensearch") {
		o, at := c.Sinks[name].OpenSearch, join("sinks", name)+".opensearch.aws"
		switch {
		case o.AWS == nil:
		case o.Sign == "":
			d.add(at, "requests are not signed, so that it does nothing; want sign: es or aoss")
		case o.AWS.Endpoint != "":
			d.add(at+".endpoint", "a cluster is at its urls; leave it out")
		}
	}
}

// IsRole reports whether a text is the ARN of a role.
func IsRole(arn string) bool { return goodRole.MatchString(arn) }

// matches notes a value that is not of a form. Empty values are left out.
func (c *Config) matches(path, value string, form *regexp.Regexp, what string) {
	if value != "" && !form.MatchString(value) {
		c.doc.add(path, "%s is not %s", c.doc.show(path, value), what)
	}
}

func (c *Config) validateEndpoint(path, endpoint string) {
	if u, err := url.Parse(endpoint); err == nil && u.User != nil {
		c.doc.add(path, "it has a password, which logs would show; want a URL without")
	} else if !isURL(endpoint) {
		c.doc.add(path, "%s is no URL such as http://127.0.0.1:8000", c.doc.show(path, endpoint))
	} else if awsclient.Exposed(endpoint) {
		c.doc.add(path, "it is plain http to AWS, where others could read items and repeat requests; want https")
	}
}

// queueAccess returns the account of a queue that the application consumes: that of
// the sink that names it by the same text, else that of source.
func (c *Config) queueAccess(queue string) (accounts.Access, error) {
	var found *accounts.Access
	for _, name := range c.ofKind("sqs") {
		o := c.Sinks[name].SQS
		if o.Queue != queue {
			continue
		}
		at := c.access(join("sinks", name)+".sqs.aws", o.AWS)
		if found != nil && !found.Same(at) {
			return at, c.wrong("sinks."+name, fmt.Errorf("the queue %s is consumed, and %s has the same name in another account; want URLs of both", path.Base(queue), found.Field))
		}
		found = &at
	}
	if found != nil {
		return *found, nil
	}
	at := c.SourceAccess()
	at.Endpoint = "" // of DynamoDB
	return at, nil
}

// sameQueue reports whether two texts name one queue: by the same URL, or by a name at
// the end of a URL. Two URLs with the same name may differ in Region or account.
func sameQueue(a, b string) bool {
	return a == b || path.Base(a) == path.Base(b) && (path.Base(a) == a || path.Base(b) == b)
}
