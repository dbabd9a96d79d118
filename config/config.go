package config

// Config is one file. Each field's comment is its entry in the reference and in
// the schema.
type Config struct {
	// Name separates this application's positions and dead letters from those of
	// others in one state file. Default "sluice".
	Name string `yaml:"name"`
	// Source says what is read.
	Source Source `yaml:"source"`
	// EntityType says how a record's entity type is found, the first half of
	// the keys that routes are for. Default: the attribute entityType.
	EntityType EntityType `yaml:"entityType"`
	// AWS overrides what the environment says.
	AWS AWS `yaml:"aws"`
	// Sinks are where handlers write, by names that routes use.
	Sinks map[string]Sink `yaml:"sinks"`
	// Routes are tried in their order; every one that matches runs.
	Routes []Route `yaml:"routes"`
	// DeadLetter says what becomes of a record that fails for good.
	DeadLetter DeadLetter `yaml:"deadLetter"`
	// Limits bound what is in progress at a time.
	Limits Limits `yaml:"limits"`
	// Daemon is for `sluice run` alone; a Lambda function does without.
	Daemon Daemon `yaml:"daemon"`
}

// Source says what is read.
type Source struct {
	// Tables whose streams are read: names, or ARNs of streams.
	Tables []string `yaml:"tables"`
	// Queues that are consumed: names or URLs. Those of cascades and
	// escalations are consumed without being named here.
	Queues []string `yaml:"queues"`
	// Start is where a stream begins that was never read: TRIM_HORIZON or LATEST.
	Start string `yaml:"start"`
	// Backfill has the tables read whole, once, for the routes that name SNAPSHOT.
	Backfill bool `yaml:"backfill"`
	// BackfillUnits are the read units a second that a backfill takes of a
	// table. Default: a quarter of what is provisioned, 1000 on demand.
	BackfillUnits float64 `yaml:"backfillUnits"`
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
	Attribute string `yaml:"attribute"`
	// Pattern, such as "{type}#*".
	Pattern string `yaml:"pattern"`
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
	// that they are parked behind it. Default record.
	Park string `yaml:"park"`
	// Queue that a Lambda function parks in, by name or URL. Without one, a
	// function stops at the record, and the mapping's own destination counts.
	// A daemon parks in its state file.
	Queue string `yaml:"queue"`
	// MaxAge of a record that keeps failing, before it is parked. Default 20h
	// in a daemon, never in a function.
	MaxAge Duration `yaml:"maxAge"`
}

// Limits bound what is in progress at a time.
type Limits struct {
	// Concurrency is how many handlers run at once for one shard or invocation. Default 64.
	Concurrency int `yaml:"concurrency"`
	// Window is how many records of a shard may be unsettled. Default 4096.
	Window int `yaml:"window"`
	// WindowBytes of them. Default 64 MiB.
	WindowBytes int64 `yaml:"windowBytes"`
	// MaxAhead is how many records may be settled past one that is held. Default 100000.
	MaxAhead int `yaml:"maxAhead"`
	// Order of records: "item" or "shard". Default item.
	Order string `yaml:"order"`
	// StuckAfter is how long a handler may run before it is reported. Default 1m.
	StuckAfter Duration `yaml:"stuckAfter"`
}

// Daemon is for `sluice run` alone.
type Daemon struct {
	// State is the file of positions and dead letters. Default sluice.db.
	State string `yaml:"state"`
	// Listen is the address of metrics, health and dead letters, or "off". Default 127.0.0.1:9464.
	Listen string `yaml:"listen"`
	// Pprof serves Go's profiles on Listen, too.
	Pprof bool `yaml:"pprof"`
	// Grace is the time from SIGTERM to the exit. Default 25s.
	Grace Duration `yaml:"grace"`
	// LogFormat is text or json. Default text.
	LogFormat string `yaml:"logFormat"`
	// LogLevel is debug, info, warn or error. Default info.
	LogLevel string `yaml:"logLevel"`
}
