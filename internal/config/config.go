package config

import "time"

//go:generate go run ../cmd/configref

// Config is one file. The comment of a field is its entry in the reference and in
// the schema.
type Config struct {
	// Application, which has its own positions and dead letters. Default sluice.
	Name string `yaml:"name" default:"sluice"`
	// What Sluice reads.
	Source Source `yaml:"source" is:"required"`
	// Where a record has its entity type. Default entityType.
	EntityType EntityType `yaml:"entityType" default:"entityType"`
	// Region, credentials and endpoints, in place of the environment's.
	AWS AWS `yaml:"aws"`
	// Places that handlers write to, by the names that routes use.
	Sinks map[string]Sink `yaml:"sinks"`
	// Routes, in this order. Every route that matches a record runs.
	Routes []Route `yaml:"routes" is:"required"`
	// What happens to a record that fails for good.
	DeadLetter DeadLetter `yaml:"deadLetter"`
	// Limits of the work in progress.
	Limits Limits `yaml:"limits"`
	// Traces, if the variables OTEL_… ask for them.
	Tracing Tracing `yaml:"tracing"`
	// Settings of `sluice run`.
	Daemon Daemon `yaml:"daemon"`

	doc *source // set for a parsed Config
}

// Source says what Sluice reads.
type Source struct {
	// Tables to read: names, or ARNs of streams.
	Tables Strings `yaml:"tables"`
	// Queues to consume: names or URLs. Sluice adds those of cascade, watch and
	// contact.
	Queues Strings `yaml:"queues"`
	// Where to begin a stream that was never read.
	Start string `yaml:"start" is:"one of=TRIM_HORIZON|LATEST"`
	// Read the tables whole, once, for the routes with SNAPSHOT. Default false.
	Backfill bool `yaml:"backfill" default:"false"`
	// Read units a second of a backfill. Default: a quarter of the provisioned, 1000
	// on demand.
	BackfillUnits float64 `yaml:"backfillUnits" is:"above=0"`
	// Account of the tables, and of queues that no sink names.
	AWS *Account `yaml:"aws"`
}

// AWS replaces settings of the environment.
type AWS struct {
	// Region of the services.
	Region string `yaml:"region"`
	// Profile with the credentials.
	Profile string `yaml:"profile"`
	// Role to assume, instead of profile.
	AssumeRole *AssumeRole `yaml:"assumeRole"`
	// URLs of dynamodb (also of streams), sqs and sts.
	Endpoints map[string]string `yaml:"endpoints"`
}

// DeadLetter says what happens to a record that fails for good.
type DeadLetter struct {
	// The "record" alone, or also later changes of its "item" (not in a function).
	// Default record.
	Park string `yaml:"park" is:"one of=record|item" default:"record"`
	// SQS queue for a function's dead letters. A daemon uses its state file.
	Queue string `yaml:"queue"`
	// File of the keys of a function's letters, one a line, of 32 characters or more.
	// The first signs. SLUICE_LETTER_KEY wins.
	KeyFile string `yaml:"keyFile"`
	// Age at which a failing record is parked. Default 20h in a daemon, never in a
	// function.
	MaxAge Duration `yaml:"maxAge" is:"min=1s"`
}

// Limits bound the work in progress.
type Limits struct {
	// Handlers that run at once for a shard or an invocation. Default 64.
	Concurrency int `yaml:"concurrency" is:"min=1" default:"64"`
	// Unsettled records of a shard. Default 4096.
	Window int `yaml:"window" is:"min=1" default:"4096"`
	// Bytes of the unsettled records of a shard. Default 64 MiB.
	WindowBytes int64 `yaml:"windowBytes" is:"min=1" default:"67108864"`
	// Bytes of a shard's records that wait because one failed. Default 64 MiB.
	HeldBytes int64 `yaml:"heldBytes" is:"min=1" default:"67108864"`
	// Records settled after one that waits, at most. Default 1000000.
	MaxAhead int `yaml:"maxAhead" is:"min=1" default:"1000000"`
	// Order of the records of an item, or of a whole shard. Default item.
	Order string `yaml:"order" is:"one of=item|shard" default:"item"`
	// Time after which a running handler is reported. Default 1m.
	StuckAfter Duration `yaml:"stuckAfter" is:"min=1ms" default:"1m"`
}

// Tracing has settings of traces.
type Tracing struct {
	// Attribute of an item with the traceparent of its writer. Default traceparent.
	Parent string `yaml:"parent" default:"traceparent"`
}

// Daemon has settings of `sluice run`.
type Daemon struct {
	// File of positions and dead letters, or dynamodb:TABLE. Default sluice.db.
	State string `yaml:"state" default:"sluice.db"`
	// Address of metrics, health and dead letters, or "off". Default 127.0.0.1:9464.
	Listen string `yaml:"listen" default:"127.0.0.1:9464"`
	// File of the operators' token. Default: the state file's name with .token.
	TokenFile string `yaml:"tokenFile"`
	// Names by which a proxy serves the daemon.
	AllowHosts Strings `yaml:"allowHosts"`
	// Do not start while a sink is down. Default: hold its routes. Default false.
	RequireSinks bool `yaml:"requireSinks" default:"false"`
	// Serve Go's profiles on listen. Default false.
	Pprof bool `yaml:"pprof" default:"false"`
	// Time from SIGTERM to the exit. Default 25s.
	Grace Duration `yaml:"grace" is:"min=1s" default:"25s"`
	// Format of the log. Default text.
	LogFormat string `yaml:"logFormat" is:"one of=text|json" default:"text"`
	// Lowest level of the log. Default info.
	LogLevel string `yaml:"logLevel" is:"one of=debug|info|warn|error" default:"info"`
}

// Duration is a duration such as 30s, 5m or 1h30m.
type Duration time.Duration

// Duration returns d as a time.Duration.
func (d Duration) Duration() time.Duration { return time.Duration(d) }

// String formats as time.Duration does.
func (d Duration) String() string { return d.Duration().String() }

// Strings is one string or a list of them.
type Strings []string

// KeyFrom maps a parent's key attributes to the child's attributes with the same
// values.
type KeyFrom map[string]string

// Texts are named texts in file order.
type Texts []Text

// Text is a name and its text.
type Text struct{ Name, Value string }

// Fields are fields of a document in file order.
type Fields []Field

// Field is a field of a document: a template, or a constant of another type.
type Field struct {
	Name  string
	Value any // string, bool, int64, float64 or nil
}
