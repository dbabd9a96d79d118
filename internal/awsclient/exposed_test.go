package awsclient

import (
	"strings"
	"testing"
)

func TestExposed(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"http://dynamodb.eu-west-1.amazonaws.com":              true,
		"HTTP://Dynamodb.eu-west-1.amazonaws.COM.:80/":         true,
		"http://sqs.cn-north-1.amazonaws.com.cn":               true,
		"http://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com":  true,
		"http://dynamodb.eu-west-1.api.aws":                    true,
		"http://dynamodb.eusc-de-east-1.amazonaws.eu":          true,
		"https://dynamodb.eu-west-1.amazonaws.com":             false,
		"http://dynamodb:8000":                                 false,
		"http://127.0.0.1:8000":                                false,
		"http://sqs.eu-west-1.localhost.localstack.cloud:4566": false,
		"http://notamazonaws.com":                              false,
		"http://dynamodb.eu-west-1.amazonaws.com.example.com":  false,
		"://": false,
	} {
		if Exposed(endpoint) != want {
			t.Errorf("%s: %t", endpoint, !want)
		}
	}
}

func TestExposedVariable(t *testing.T) {
	for _, name := range []string{
		"SLUICE_ENDPOINT_DYNAMODB", "SLUICE_ENDPOINT_SQS", "SLUICE_ENDPOINT_STS",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_STS",
	} {
		for url, exposed := range map[string]bool{"": false, "http://dynamodb:8000": false, "http://sqs.eu-west-1.amazonaws.com": true} {
			err := ExposedVariable(func(asked string) string { return map[string]string{name: url}[asked] })
			if (err != nil) != exposed || exposed && !strings.HasPrefix(err.Error(), name+": it is plain http to AWS") {
				t.Errorf("%s=%s: %v", name, url, err)
			}
		}
	}
}
