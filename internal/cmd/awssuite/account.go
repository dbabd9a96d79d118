package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/localstack"
)

// region is what the tests say of themselves, and what the prices are of.
const region = "us-east-1"

// account is where the suite runs: an account of AWS, or the local servers.
type account struct {
	cfg  aws.Config
	id   string // the account's number; empty on local servers
	arn  string // of the caller
	urls endpoints
	// DynamoDB Local has no tags. There the suite removes the tables whose
	// creation it saw.
	local bool
	pause time.Duration // between two looks at a resource that changes
	// How long after a write an index or a stream may not have it. The tests read
	// what they wrote.
	settle time.Duration

	tables *dynamodb.Client
	queues *sqs.Client
	signer *v4.Signer
	client *http.Client
}

type endpoints struct{ dynamodb, streams, sqs, domains string }

// openAccount finds credentials and a Region the way the AWS CLI does, and asks
// who the caller is.
func openAccount(ctx context.Context) (*account, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no Region: set AWS_REGION=" + region)
	}
	if cfg.Region != region {
		return nil, fmt.Errorf("Region %s: the tests name %s; set AWS_REGION=%[2]s", cfg.Region, region)
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("no credentials: %w; set AWS_PROFILE, or log in with the AWS CLI", err)
	}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("the credentials do not work: %w", err)
	}
	a := newAccount(cfg)
	a.id, a.arn = aws.ToString(who.Account), aws.ToString(who.Arn)
	const domain = region + ".amazonaws.com"
	return a.at(endpoints{
		dynamodb: "https://dynamodb." + domain, streams: "https://streams.dynamodb." + domain,
		sqs: "https://sqs." + domain, domains: "https://es." + domain,
	}), nil
}

// openLocal leads to the servers that withstack started.
func openLocal(env func(string) string) (*account, error) {
	a := newAccount(aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
	a.local, a.pause, a.settle = true, 10*time.Millisecond, 0
	a.at(endpoints{dynamodb: env(localstack.EnvDynamoDB), streams: env(localstack.EnvDynamoDB), sqs: env(localstack.EnvSQS)})
	if a.urls.dynamodb == "" || a.urls.sqs == "" {
		return nil, fmt.Errorf("--local: %s or %s is not set; run make aws LOCAL=1", localstack.EnvDynamoDB, localstack.EnvSQS)
	}
	return a, nil
}

func newAccount(cfg aws.Config) *account {
	// Send exactly what is signed: no extra header from the transport.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, MaxIdleConnsPerHost: 100, IdleConnTimeout: 20 * time.Second}
	return &account{cfg: cfg, pause: 2 * time.Second, settle: 2 * time.Second, signer: v4.NewSigner(), client: &http.Client{Transport: transport}}
}

// at says where the services are.
func (a *account) at(urls endpoints) *account {
	a.urls = urls
	a.tables = dynamodb.NewFromConfig(a.cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &urls.dynamodb })
	a.queues = sqs.NewFromConfig(a.cfg, func(o *sqs.Options) { o.BaseEndpoint = &urls.sqs })
	return a
}

// hopHeaders belong to one connection, or to the signature that is replaced.
var hopHeaders = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
	"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256",
}

// send signs a request with the account's credentials and sends it to base.
// service is the name in the signature.
func (a *account) send(ctx context.Context, service, base, method, uri string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base, "/")+uri, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header.Clone()
	for _, name := range hopHeaders {
		req.Header.Del(name)
	}
	c, err := a.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	if err := a.signer.SignHTTP(ctx, c, req, hex.EncodeToString(sum[:]), service, a.cfg.Region, time.Now()); err != nil {
		return nil, err
	}
	return a.client.Do(req)
}

// wait calls ready until it says so, or fails, or ctx ends.
func (a *account) wait(ctx context.Context, ready func() (bool, error)) error {
	for {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		if err := backoff.Sleep(ctx, a.pause); err != nil {
			return err
		}
	}
}
