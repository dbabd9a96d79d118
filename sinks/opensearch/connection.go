package opensearch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const defaultURL = "http://127.0.0.1:9200"

// Connection says where a cluster is and how to be let in. The zero value is
// for a cluster on this machine without security: http://127.0.0.1:9200.
type Connection struct {
	// URLs of the nodes, or of what stands before them, such as
	// https://search.example.com:9200. A path is put before those of requests.
	// Several take turns; one that cannot be reached is left out for a while.
	URLs []string

	Username string // for basic authentication, together with Password
	Password string // may also stand in each URL, percent-encoded

	// AllowPlainHTTP are hosts, such as search or search:9200, that URLs with http://
	// may lead to although requests have a password or are signed: whoever is on the
	// way can read the password, and repeat signed requests for some minutes. This
	// machine needs no name.
	AllowPlainHTTP []string

	// CAFile is a file of PEM certificates that are trusted beside those of the
	// system.
	CAFile string

	// AWS signs the requests (SigV4) with the credentials and for the Region of
	// the configuration.
	AWS     *aws.Config
	Service string // that they are signed for: "es" (the default) or "aoss", OpenSearch Serverless

	// Timeout is that of a Call whose context has no deadline (default 30 s).
	Timeout time.Duration
}

func (c Connection) withDefaults() Connection {
	if len(c.URLs) == 0 {
		c.URLs = []string{defaultURL}
	}
	if c.AWS != nil && c.Service == "" {
		c.Service = "es"
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	return c
}

func (c Connection) validate() error {
	var errs []error
	wrong := func(format string, a ...any) { errs = append(errs, fmt.Errorf("opensearch: Connection."+format, a...)) }
	withUser := false
	for i, text := range c.URLs {
		// The text is not shown, and no parser's words about it: it may hold a
		// password.
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
			wrong("URLs[%d] is no URL such as https://search.example.com:9200; want http or https, a host, perhaps a port and a path (in a user name or password, characters such as @ : / # are percent-encoded)", i)
			continue
		}
		if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
			wrong("URLs[%d] has a query or a fragment; want http or https, a host, perhaps a port and a path", i)
		}
		if u.User != nil {
			withUser = true
			if p, _ := u.User.Password(); p == "" || u.User.Username() == "" {
				wrong("URLs[%d] has a user name without a password, or the other way round; want both or none", i)
			}
		}
	}
	if (c.Username == "") != (c.Password == "") {
		wrong("Username and Password go together, and one of them is empty; want both or none")
	}
	for _, i := range c.Exposed() {
		wrong("URLs[%d] is plain http to another host, and others could read the password or repeat signed requests; want https, or the host in AllowPlainHTTP", i)
	}
	if c.AWS != nil && (withUser || c.Username != "") {
		wrong("AWS signs the requests, but there is a user name, too; want one of the two")
	}
	switch {
	case c.AWS == nil && c.Service != "":
		wrong("Service is %q, but AWS is nil; want an aws.Config to sign with, or no Service", c.Service)
	case c.Service != "" && c.Service != "es" && c.Service != "aoss":
		wrong("Service is %q; want \"es\" (OpenSearch Service) or \"aoss\" (OpenSearch Serverless)", c.Service)
	}
	if c.AWS != nil && c.AWS.Region == "" {
		wrong("AWS has no Region to sign for: set AWS_REGION, the profile's region, or Region of the aws.Config")
	}
	if c.AWS != nil && c.AWS.Credentials == nil {
		wrong("AWS has no credentials; load the aws.Config by config.LoadDefaultConfig, or set its Credentials")
	}
	if c.Timeout < 0 {
		wrong("Timeout is %v; want 0 (30s) or above", c.Timeout)
	}
	return errors.Join(errs...)
}

// Exposed returns the indexes of the URLs by which a password or signed requests
// would go to another host over plain HTTP, although AllowPlainHTTP does not name it.
func (c Connection) Exposed() (exposed []int) {
	secret := c.Password != "" || c.AWS != nil || c.Service != ""
	for i, text := range c.URLs {
		u, err := url.Parse(text)
		if err != nil {
			continue
		}
		secret = secret || u.User != nil
		allowed := slices.ContainsFunc(c.AllowPlainHTTP, func(host string) bool {
			return strings.EqualFold(host, u.Host) || strings.EqualFold(host, u.Hostname())
		})
		if u.Scheme == "http" && isRemote(u) && !allowed {
			exposed = append(exposed, i)
		}
	}
	if !secret {
		return nil
	}
	return exposed
}

// urls returns the URLs, which validate has seen.
func (c Connection) urls() ([]*url.URL, error) {
	var urls []*url.URL
	for i, text := range c.URLs {
		u, err := url.Parse(strings.TrimRight(text, "/"))
		if err != nil {
			return nil, fmt.Errorf("opensearch: Connection.URLs[%d] is no URL", i)
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// roundTripper returns what makes the requests.
func (c Connection) roundTripper() (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 0 // no limit: there are few hosts
	t.MaxIdleConnsPerHost = 64
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return bodyConn{c}, nil
	}
	if c.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("opensearch: Connection.CAFile: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a machine without any
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("opensearch: Connection.CAFile %s holds no certificate; want PEM, which begins with -----BEGIN CERTIFICATE-----", c.CAFile)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}
