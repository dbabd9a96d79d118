package config

//go:generate go run ../cmd/configref

// Config is one file. Each field's comment is its entry in the reference and in
// the schema.
type Config struct {
	// Name separates this application's positions and dead letters from those of
	// others in one state file. Default "sluice".
	Name string `yaml:"name" default:"sluice"`
	// Source says what is read.
	Source Source `yaml:"source" is:"required"`
	// EntityType says how a record's entity type is found, the first half of
	// the keys that routes are for. Default: the attribute entityType.
	EntityType EntityType `yaml:"entityType" default:"entityType"`
	// AWS overrides what the environment says.
	AWS AWS `yaml:"aws"`
	// Sinks are where handlers write, by names that routes use.
	Sinks map[string]Sink `yaml:"sinks"`
	// Routes are tried in their order; every one that matches runs.
	Routes []Route `yaml:"routes" is:"required"`
	// DeadLetter says what becomes of a record that fails for good.
	DeadLetter DeadLetter `yaml:"deadLetter"`
	// Limits bound what is in progress at a time.
	Limits Limits `yaml:"limits"`
	// Daemon is for `sluice run` alone; a Lambda function does without.
	Daemon Daemon `yaml:"daemon"`

	doc *source // of a Config that was read
}

// Source says what is read.
type Source struct {
	// Tables whose streams are read: names, or ARNs of streams.
	Tables Strings `yaml:"tables"`
	// Queues that are consumed: names or URLs. Those of cascades and of watchdogs
	// are consumed without being named here; and those of the steps of
	// escalations where there is a route of contact.
	Queues Strings `yaml:"queues"`
	// Start is where a stream begins that was never read: TRIM_HORIZON or LATEST.
	Start string `yaml:"start" is:"one of=TRIM_HORIZON|LATEST"`
	// Backfill has the tables read whole, once, for the routes that name SNAPSHOT.
	Backfill bool `yaml:"backfill" default:"false"`
	// BackfillUnits are the read units a second that a backfill takes of a
	// table. Default: a quarter of what is provisioned, 1000 on demand.
	BackfillUnits float64 `yaml:"backfillUnits" is:"above=0"`
}

// EntityType finds the entity type of a record. One of its fields is set; in
// YAML a string is an attribute, and a list of them is tried in order.
type EntityType struct {
	// Attribute holds the type.
	Attribute string `yaml:"attribute"`
	// Key takes the type from a key attribute by a pattern.
	Key *KeyPattern `yaml:"key"`
	// Tables have a type each, by their names.
	Tables map[string]string `yaml:"tables"`
	// First is the list form: the first that finds a type decides.
	First []EntityType `yaml:"-"`
}

// KeyPattern is a pattern of router.KeyPattern.
type KeyPattern struct {
	// Attribute of the key.
	Attribute string `yaml:"attribute" is:"required"`
	// Pattern, such as "{type}#*".
	Pattern string `yaml:"pattern" is:"required"`
}

// AWS overrides what the environment says.
type AWS struct {
	// Region of the services.
	Region string `yaml:"region"`
	// Endpoints are URLs by service: dynamodb, sqs. DynamoDB's is its streams', too.
	Endpoints map[string]string `yaml:"endpoints"`
}

// DeadLetter says what becomes of a record that fails for good.
type DeadLetter struct {
	// Park is "record", so that later changes of the item go on, or "item", so
	// that they are parked behind it, which a function with a queue cannot do.
	// Default record.
	Park string `yaml:"park" is:"one of=record|item" default:"record"`
	// Queue that a Lambda function parks in, by name or URL. Without one, a
	// function stops at the record, and the mapping's own destination counts.
	// A daemon parks in its state file.
	Queue string `yaml:"queue"`
	// KeyFile has the keys that sign the letters a function sends, and that
	// `sluice dlq` verifies letters of a queue with: one a line, of 32 characters
	// or more. The first signs. SLUICE_LETTER_KEY holds the keys themselves, and goes
	// before it.
	KeyFile string `yaml:"keyFile"`
	// MaxAge of a record that keeps failing, before it is parked. Default 20h
	// in a daemon, never in a function.
	MaxAge Duration `yaml:"maxAge" is:"min=1s"`
}

// Limits bound what is in progress at a time.
type Limits struct {
	// Concurrency is how many handlers run at once for one shard or invocation. Default 64.
	Concurrency int `yaml:"concurrency" is:"min=1" default:"64"`
	// Window is how many records of a shard may be unsettled. Default 4096.
	Window int `yaml:"window" is:"min=1" default:"4096"`
	// WindowBytes of them. Default 64 MiB.
	WindowBytes int64 `yaml:"windowBytes" is:"min=1" default:"67108864"`
	// HeldBytes is how many bytes of a shard's records may wait because they
	// failed, or because one before them did; they do not count in the window.
	// When it is used up the shard is not read. Default 64 MiB.
	HeldBytes int64 `yaml:"heldBytes" is:"min=1" default:"67108864"`
	// MaxAhead is how many records may be settled past one that is held. Default
	// 1000000: of 1,000 a second those of 15 minutes.
	MaxAhead int `yaml:"maxAhead" is:"min=1" default:"1000000"`
	// Order of records: "item" or "shard". Default item.
	Order string `yaml:"order" is:"one of=item|shard" default:"item"`
	// StuckAfter is how long a handler may run before it is reported. Default 1m.
	StuckAfter Duration `yaml:"stuckAfter" is:"min=1ms" default:"1m"`
}

// Daemon is for `sluice run` alone.
type Daemon struct {
	// State is the file of positions and dead letters. Default sluice.db.
	State string `yaml:"state" default:"sluice.db"`
	// Listen is the address of metrics, health and dead letters, or "off". Default 127.0.0.1:9464.
	Listen string `yaml:"listen" default:"127.0.0.1:9464"`
	// TokenFile has the token that operators need for all that Listen answers but
	// metrics and health. Default: the state file with ".token" behind its name,
	// which is made.
	TokenFile string `yaml:"tokenFile"`
	// AllowHosts are names by which a proxy serves the daemon to operators.
	AllowHosts Strings `yaml:"allowHosts"`
	// RequireSinks has the daemon not start while a sink is down. Otherwise it
	// starts, holds the routes of that sink and is not ready until it is back.
	RequireSinks bool `yaml:"requireSinks" default:"false"`
	// Pprof serves Go's profiles on Listen, too.
	Pprof bool `yaml:"pprof" default:"false"`
	// Grace is the time from SIGTERM to the exit. Default 25s.
	Grace Duration `yaml:"grace" is:"min=1s" default:"25s"`
	// LogFormat is text or json. Default text.
	LogFormat string `yaml:"logFormat" is:"one of=text|json" default:"text"`
	// LogLevel is debug, info, warn or error. Default info.
	LogLevel string `yaml:"logLevel" is:"one of=debug|info|warn|error" default:"info"`
}
