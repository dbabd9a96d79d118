// Package sqsclient resolves the name or URL of a queue.
package sqsclient

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Queue is one queue and the client that reaches it.
type Queue struct {
	Name   string // for messages to people
	Where  string // likewise: the endpoint and region
	URL    string // "" if a name was given, which is to be looked up
	FIFO   bool
	Client *sqs.Client
}

// Open returns the queue of a URL, or of a name in cfg's account and region. It
// makes no call. The endpoint is that of cfg or of AWS_ENDPOINT_URL_SQS; without
// one it is AWS's, or that of a URL which is not at AWS.
func Open(cfg aws.Config, queue string) (Queue, error) {
	q := Queue{Name: queue}
	var own *string // the endpoint of a URL that is not at AWS
	if strings.Contains(queue, "/") {
		u, err := url.Parse(queue)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || path.Base(u.Path) == "/" || path.Base(u.Path) == "." {
			return q, fmt.Errorf("%q is neither a queue's URL, such as https://sqs.us-east-1.amazonaws.com/123456789012/jobs, nor its name", queue)
		}
		q.Name, q.URL = path.Base(u.Path), queue
		if region, isAWS := awsRegion(u.Hostname()); !isAWS {
			own = new(u.Scheme + "://" + u.Host)
		} else if region != "" && cfg.Region != "" && region != cfg.Region {
			return q, fmt.Errorf("queue %s is in region %s, but the configuration's region is %s", queue, region, cfg.Region)
		}
	}
	if q.Name == "" {
		return q, errors.New("a queue's name is empty: give its name or its URL")
	}
	if cfg.Region == "" {
		return q, fmt.Errorf("queue %q: no Region: set AWS_REGION, the profile's region, or Region of the aws.Config", q.Name)
	}
	q.FIFO = strings.HasSuffix(q.Name, ".fifo")
	q.Client = sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		if o.BaseEndpoint == nil {
			o.BaseEndpoint = own
		}
		q.Where = "at AWS in region " + o.Region
		if o.BaseEndpoint != nil {
			q.Where = fmt.Sprintf("at %s in region %s", *o.BaseEndpoint, o.Region)
		}
	})
	return q, nil
}

// awsRegion reports whether host belongs to AWS, and its region if the name has
// it.
func awsRegion(host string) (region string, isAWS bool) {
	name, ok := strings.CutSuffix(host, ".amazonaws.com")
	if !ok {
		name, ok = strings.CutSuffix(host, ".amazonaws.com.cn")
	}
	if !ok {
		return "", false
	}
	region, ok = strings.CutPrefix(name, "sqs.")
	if !ok || strings.Contains(region, ".") {
		region = ""
	}
	return region, true
}
