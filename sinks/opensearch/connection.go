package opensearch

import (
	"cmp"
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

// Connection is the address of a cluster and the credentials. The zero value is a
// cluster without security on this machine: http://127.0.0.1:9200.
type Connection struct {
	// URLs of the nodes or of a proxy before them, such as
	// https://search.example.com:9200. A path is prepended to those of
	// requests. Several take turns; an unreachable one is skipped for a while.
	URLs []string

	Username string // for basic authentication, with Password
	Password string // or in each URL, percent-encoded

	// AllowPlainHTTP lists hosts, such as search or search:9200, to which
	// http:// URLs may send a password or signed requests. Anybody on the way
	// can read the password, and repeat signed requests for some minutes. This
	// machine is always allowed.
	AllowPlainHTTP []string

	// CAFile is a file of PEM certificates to trust besides those of the
	// system.
	CAFile string

	// AWS signs the requests (SigV4) with the credentials and Region of the
	// configuration.
	AWS     *aws.Config
	Service string // signed service: "es" (the default) or "aoss", OpenSearch Serverless

	// Timeout applies to a Call whose context has no deadline (default 30 s).
	Timeout time.Duration
}

func (c Connection) withDefaults() Connection {
	if len(c.URLs) == 0 {
		c.URLs = []string{defaultURL}
	}
	if c.AWS != nil && c.Service == "" {
		c.Service = "es"
	}
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	return c
}

func (c Connection) validate() error {
	var errs []error
	wrong := func(format string, a ...any) { errs = append(errs, fmt.Errorf("opensearch: Connection."+format, a...)) }
	withUser := false
	for i, text := range c.URLs {
		// Omit the text and the parser's error: they may contain a password.
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

// Exposed returns the indexes of the URLs that would send a password or signed
// requests to another host over plain HTTP without AllowPlainHTTP.
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

// urls returns the validated URLs.
func (c Connection) urls() (urls []*url.URL) {
	for _, text := range c.URLs {
		u, _ := url.Parse(strings.TrimRight(text, "/")) // validated
		urls = append(urls, u)
	}
	return urls
}

// roundTripper returns the transport for requests.
func (c Connection) roundTripper() (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 0 // no limit: hosts are few
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
		roots = x509.NewCertPool() // the machine has none
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("opensearch: Connection.CAFile %s holds no certificate; want PEM, which begins with -----BEGIN CERTIFICATE-----", c.CAFile)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}
