package opensearch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func parseAmzDate(s string) (time.Time, error) { return time.Parse("20060102T150405Z", s) }

func awsConfig() aws.Config {
	return aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "not-a-secret", "token")}
}

// The server signs the received request itself, and compares the signatures.
func TestRequestsAreSigned(t *testing.T) {
	for _, service := range []string{"es", "aoss"} {
		cfg := awsConfig()
		for _, tt := range []struct {
			path string
			in   any
		}{
			{"/", nil},
			{"/_bulk?filter_path=items.*.status,took&refresh=true", []byte("body\n")},
			{"/i/_doc/a%2Fb%20c", nil},
		} {
			c := answering(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sum := sha256.Sum256(body)
				digest := hex.EncodeToString(sum[:])
				if got := r.Header.Get("X-Amz-Content-Sha256"); got != digest {
					t.Errorf("digest %s, want %s", got, digest)
				}
				signed := r.Header.Get("Authorization")
				_, names, _ := strings.Cut(signed, "SignedHeaders=")
				names, _, _ = strings.Cut(names, ",")
				if strings.Contains(names, "content-length") || !strings.Contains(names, "x-amz-content-sha256") || !strings.Contains(signed, "/eu-west-1/"+service+"/aws4_request") {
					t.Errorf("signed %s", signed)
				}
				at, err := http.ParseTime(r.Header.Get("Date"))
				if err != nil {
					at, err = parseAmzDate(r.Header.Get("X-Amz-Date"))
				}
				if err != nil {
					t.Error(err)
				}
				again := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}}
				for _, name := range strings.Split(names, ";") {
					if name != "host" {
						again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
					}
				}
				credentials, _ := cfg.Credentials.Retrieve(r.Context())
				if err := v4.NewSigner().SignHTTP(r.Context(), credentials, again, digest, service, "eu-west-1", at); err != nil {
					t.Error(err)
				}
				if got := again.Header.Get("Authorization"); got != signed {
					t.Errorf("signed\n%s, want\n%s", signed, got)
				}
			}, func(c *Connection) { c.AWS, c.Service = &cfg, service })
			if err := c.Call(t.Context(), "POST", tt.path, tt.in, nil); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestNoCredentials(t *testing.T) {
	cfg := awsConfig()
	none := errors.New("none found")
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, none })
	c := answering(t, func(http.ResponseWriter, *http.Request) { t.Error("sent unsigned") }, func(c *Connection) { c.AWS = &cfg })
	err := c.Call(t.Context(), "GET", "/", nil, nil)
	var unsigned *signError
	if !errors.As(err, &unsigned) || !errors.Is(err, none) || !strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Error(err)
	}
}
