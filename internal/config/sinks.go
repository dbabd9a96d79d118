package config

import (
	"strings"
)

// Sink is a place to write to. Set one field.
type Sink struct {
	// An SQS queue.
	SQS *SQS `yaml:"sqs"`
	// An OpenSearch cluster.
	OpenSearch *OpenSearch `yaml:"opensearch"`
	// The tables of handlers. Handlers use the only one, or its defaults.
	DynamoDB *DynamoDB `yaml:"dynamodb"`
}

// SQS is a queue.
type SQS struct {
	// Name or URL.
	Queue string `yaml:"queue" is:"required"`
	// Requests at a time. Default 16.
	InFlight int `yaml:"inFlight" is:"min=1" default:"16"`
	// Time limit of a request with its retries. Default 30s.
	Timeout Duration `yaml:"timeout" is:"min=1s" default:"30s"`
	// Account of the queue.
	AWS *Account `yaml:"aws"`
}

func (o *SQS) fifo() bool { return strings.HasSuffix(o.Queue, ".fifo") }

// OpenSearch is a cluster.
type OpenSearch struct {
	// URLs of the nodes.
	URLs Strings `yaml:"urls" is:"required"`
	// User of basic authentication.
	Username string `yaml:"username"`
	// Password; use a variable: ${OPENSEARCH_PASSWORD}.
	Password string `yaml:"password"`
	// Hosts, such as search:9200, that may get a password or signatures by http; this
	// machine always may.
	AllowPlainHTTP Strings `yaml:"allowPlainHTTP"`
	// File of more trusted PEM certificates.
	CAFile string `yaml:"caFile"`
	// Sign requests with AWS credentials for this service.
	Sign string `yaml:"sign" is:"one of=es|aoss"`
	// Missing indices to create at a daemon's start, or by `sluice validate
	// --connect`.
	Indices []Index `yaml:"indices"`
	// Refuse writes to a name that is not an alias.
	RequireAlias bool `yaml:"requireAlias"`
	// Bulk requests at a time. Default 8.
	InFlight int `yaml:"inFlight" is:"min=1" default:"8"`
	// Bytes of a bulk request. Default 2097152.
	MaxBytes int `yaml:"maxBytes" is:"min=1024" default:"2097152"`
	// Items of a bulk request. Default 5000.
	MaxItems int `yaml:"maxItems" is:"min=1" default:"5000"`
	// Time limit of a write with its retries. Default 1m.
	Timeout Duration `yaml:"timeout" is:"min=1s" default:"1m"`
	// Account that signs, with sign. It has no endpoint.
	AWS *Account `yaml:"aws"`
}

// Index is an index behind an alias.
type Index struct {
	// Alias to write to and to search.
	Alias string `yaml:"alias" is:"required"`
	// JSON file of settings and mappings, relative to the configuration.
	File string `yaml:"file" is:"required"`
}

// DynamoDB is the tables of handlers.
type DynamoDB struct {
	// Write units a second, by table.
	Budget map[string]float64 `yaml:"budget"`
	// Requests at a time. Default 16.
	InFlight int `yaml:"inFlight" is:"min=1" default:"16"`
	// Time limit of a request with its retries. Default 30s.
	Timeout Duration `yaml:"timeout" is:"min=1s" default:"30s"`
	// Account of tables that source does not name. Default: that of source.
	AWS *Account `yaml:"aws"`
}
