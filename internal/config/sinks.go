package config

// Sink is one place to write to. One of its fields is set.
type Sink struct {
	// SQS is a queue.
	SQS *SQS `yaml:"sqs"`
	// OpenSearch is a cluster.
	OpenSearch *OpenSearch `yaml:"opensearch"`
	// DynamoDB is the tables of the account and Region. Handlers that write
	// tables take the one sink of this kind, or one with its defaults.
	DynamoDB *DynamoDB `yaml:"dynamodb"`
}

// SQS is a queue.
type SQS struct {
	// Queue by name or URL.
	Queue string `yaml:"queue" is:"required"`
	// InFlight is how many requests run at a time. Default 16.
	InFlight int `yaml:"inFlight" is:"min=1" default:"16"`
	// Timeout of a request with its retries. Default 30s.
	Timeout Duration `yaml:"timeout" is:"min=1s" default:"30s"`
}

// OpenSearch is a cluster.
type OpenSearch struct {
	// URLs of its nodes.
	URLs Strings `yaml:"urls" is:"required"`
	// Username of basic authentication.
	Username string `yaml:"username"`
	// Password of basic authentication, better taken from the environment:
	// ${OPENSEARCH_PASSWORD}.
	Password string `yaml:"password"`
	// AllowPlainHTTP are hosts, such as search or search:9200, that urls with http://
	// may lead to although there is a password or sign: others on the way can read it.
	// This machine needs no name.
	AllowPlainHTTP Strings `yaml:"allowPlainHTTP"`
	// CAFile holds PEM certificates that are trusted, too.
	CAFile string `yaml:"caFile"`
	// Sign requests with AWS credentials for the service: es or aoss.
	Sign string `yaml:"sign" is:"one of=es|aoss"`
	// Indices are created at the start when they are not there, and never changed.
	// A Lambda function does not create them: `sluice validate --connect` does.
	Indices []Index `yaml:"indices"`
	// RequireAlias fails writes to names that are no alias, until they are one.
	RequireAlias bool `yaml:"requireAlias"`
	// InFlight is how many bulk requests run at a time.
	InFlight int `yaml:"inFlight" is:"min=1" default:"8"`
	// MaxBytes of one bulk request.
	MaxBytes int `yaml:"maxBytes" is:"min=1024" default:"2097152"`
	// MaxItems of one bulk request.
	MaxItems int `yaml:"maxItems" is:"min=1" default:"5000"`
	// Timeout of a write with its retries. Default 1m.
	Timeout Duration `yaml:"timeout" is:"min=1s" default:"1m"`
}

// Index is an index behind an alias, as package indices makes it.
type Index struct {
	// Alias that is written to and searched.
	Alias string `yaml:"alias" is:"required"`
	// File with settings and mappings in JSON, relative to the configuration.
	File string `yaml:"file" is:"required"`
}

// DynamoDB is the tables of the account and Region.
type DynamoDB struct {
	// Budget in write units a second, by table.
	Budget map[string]float64 `yaml:"budget"`
	// InFlight is how many requests run at a time. Default 16.
	InFlight int `yaml:"inFlight" is:"min=1" default:"16"`
	// Timeout of a request with its retries. Default 30s.
	Timeout Duration `yaml:"timeout" is:"min=1s" default:"30s"`
}
