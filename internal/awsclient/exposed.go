package awsclient

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Exposed reports whether an endpoint is AWS over plain HTTP. SigV4 does not send
// the secret key, but anybody on the way can read items and session tokens, and
// repeat requests for minutes. Other hosts are emulators: a signature is valid
// only for its host, so nobody can use it at AWS.
func Exposed(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || !strings.EqualFold(u.Scheme, "http") {
		return false
	}
	host := "." + strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	domains := []string{".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws", ".api.amazonwebservices.com.cn", ".api.amazonwebservices.eu"}
	return slices.ContainsFunc(domains, func(domain string) bool { return strings.HasSuffix(host, domain) })
}

// ExposedVariable returns an error for a variable of the environment that names such
// an endpoint.
func ExposedVariable(env func(string) string) error {
	for _, name := range []string{
		"SLUICE_ENDPOINT_DYNAMODB", "SLUICE_ENDPOINT_SQS", "SLUICE_ENDPOINT_STS",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_STS",
	} {
		if Exposed(env(name)) {
			return fmt.Errorf("%s: it is plain http to AWS, where others could read items and repeat requests: use https", name)
		}
	}
	return nil
}
