package main

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/versiontext"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// opensearchEnv stands in for --opensearch: a URL with a password is not for
// lists of processes.
const opensearchEnv = "SLUICE_OPENSEARCH"

// projectionFlags describe a cluster, and a projection into an index of it.
type projectionFlags struct {
	flags                   *pflag.FlagSet // that have these
	urls                    []string
	caFile, sign            string
	plainHTTP               []string
	index, id               string
	types                   []string
	typeAttribute           string
	versionAttribute        string
	bySequence, unversioned bool
}

func (p *projectionFlags) addConnection(f *pflag.FlagSet) {
	p.flags = f
	f.StringSliceVar(&p.urls, "opensearch", nil, "`URL` of OpenSearch, may have user:password@ ($SLUICE_OPENSEARCH)")
	f.StringVar(&p.caFile, "opensearch-ca", "", "`file` of PEM certificates to trust")
	f.StringSliceVar(&p.plainHTTP, "allow-plain-http", nil, "`host` that may get passwords or signatures by http")
	f.StringVar(&p.sign, "opensearch-sign", "", "sign for the `service` es or aoss")
}

func (p *projectionFlags) addProjection(f *pflag.FlagSet, unversioned string) {
	f.StringVar(&p.id, "id", "", "`template` of the document ids, such as '{pk}:{sk}'")
	f.StringVar(&p.versionAttribute, "version-attribute", "", "`attribute` of the version: a number or ISO 8601 time that every change raises; or seconds:, millis:, micros:attribute; or created,counter")
	f.BoolVar(&p.bySequence, "version-sequence", false, "the index has versions by sequence numbers")
	f.BoolVar(&p.unversioned, "unversioned", false, unversioned)
	f.StringSliceVar(&p.types, "type", nil, "only this entity `type`; repeatable")
	f.StringVar(&p.typeAttribute, "type-attribute", "entityType", "`attribute` of the entity type, without a configuration")
}

// findURLs reads the environment, unless a flag has the URLs.
func (p *projectionFlags) findURLs(env func(string) string) error {
	if p.flags.Changed("opensearch") {
		if strings.Join(p.urls, "") == "" {
			return usage("--opensearch: it is empty: is a variable not set?")
		}
	} else if urls := env(opensearchEnv); urls != "" {
		p.urls = strings.Split(urls, ",")
	}
	if len(p.urls) == 0 {
		return fmt.Errorf("--opensearch (%s): no URL is given, such as https://search.example.com:9200", opensearchEnv)
	}
	return nil
}

// connect makes a client, and no request. config is asked if requests are signed.
func (p *projectionFlags) connect(config func() (aws.Config, error)) (*opensearch.Client, error) {
	c := opensearch.Connection{URLs: p.urls, AllowPlainHTTP: p.plainHTTP, CAFile: p.caFile, Service: p.sign}
	if p.sign != "" {
		cfg, err := config()
		if err != nil {
			return nil, fmt.Errorf("AWS configuration: %w", err)
		}
		c.AWS = &cfg
	}
	return opensearch.Connect(c)
}

// versions is how many kinds of versions the flags name.
func (p *projectionFlags) versions() (n int) {
	for _, given := range []bool{p.versionAttribute != "", p.bySequence, p.unversioned} {
		if given {
			n++
		}
	}
	return n
}

// version returns the version that the flags name.
func (p *projectionFlags) version() (projection.Version, error) {
	switch {
	case p.bySequence && p.sign == "aoss":
		return projection.Version{}, usage("--version-sequence: OpenSearch Serverless keeps no revisions of documents (_seq_no), which it compares: take --version-attribute")
	case p.bySequence:
		return projection.BySequence(), nil
	case p.unversioned:
		return projection.Unversioned(), nil
	}
	v, err := versiontext.ParseAttribute(p.versionAttribute)
	if err != nil {
		return v, usage("--version-attribute: %w", err)
	}
	return v, nil
}
