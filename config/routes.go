package config

// Route is one handler and what it is for. One of Send, Project, Cascade, Count,
// Escalate and Log is set.
type Route struct {
	// Name is unique; metrics, logs and dead letters have it.
	Name string `yaml:"name"`
	// On are patterns of entity type and event: search#INSERT, search#*,
	// "*#REMOVE", orders#SNAPSHOT. A * as the event is INSERT, MODIFY and REMOVE.
	On Strings `yaml:"on"`

	// When is an expression that a record has to fulfil, over new, old, keys,
	// event and table: new.status == "active" && old.status != new.status.
	When string `yaml:"when"`
	// Changed: one of these attributes (or dotted paths) has changed.
	Changed Strings `yaml:"changed"`
	// ChangedIgnoring: another attribute than these has changed.
	ChangedIgnoring Strings `yaml:"changedIgnoring"`
	// TTL deletions are to be left out ("exclude") or are all that is taken ("only").
	TTL string `yaml:"ttl"`
	// Regions of a global table whose writes are taken. Default all.
	Regions Strings `yaml:"regions"`

	// Attempts before a record is poison, while the route works for others. Default 8.
	Attempts int `yaml:"attempts"`
	// Backoff between attempts.
	Backoff *Backoff `yaml:"backoff"`
	// Timeout of one call.
	Timeout Duration `yaml:"timeout"`
	// Concurrency is how many records the route handles at once. Default: no limit of its own.
	Concurrency int `yaml:"concurrency"`
	// Rate of calls.
	Rate *Rate `yaml:"rate"`
	// MaxAge of a record that keeps failing; see deadLetter.maxAge.
	MaxAge Duration `yaml:"maxAge"`
	// Redrive says whether dead letters may be run again although the item may
	// have changed since. Default: no for send, whose message would tell of an
	// old state as if it were new, and for project without a version, which
	// would write that state over a newer one; yes for all others.
	Redrive *bool `yaml:"redrive"`

	// Send sends a message for each record.
	Send *Send `yaml:"send"`
	// Project keeps a document of each item.
	Project *Project `yaml:"project"`
	// Cascade deletes children with their parent.
	Cascade *Cascade `yaml:"cascade"`
	// Count keeps numbers on parents.
	Count *Count `yaml:"count"`
	// Escalate tries one step after the other.
	Escalate *Escalate `yaml:"escalate"`
	// Log writes a line for each record: its keys, never its contents.
	Log *Log `yaml:"log"`
}

// Backoff between attempts: doubled each time, with full jitter.
type Backoff struct {
	// First wait. Default 100ms.
	First Duration `yaml:"first"`
	// Max wait. Default 30s.
	Max Duration `yaml:"max"`
}

// Rate of calls.
type Rate struct {
	// PerSecond on average.
	PerSecond float64 `yaml:"perSecond"`
	// Burst at once. Default 1.
	Burst int `yaml:"burst"`
}

// Send sends a message for each record.
type Send struct {
	// To is a sink, a queue.
	To string `yaml:"to"`
	// Body is "record", "new", "old" or "keys" for that as plain JSON, or a
	// template. One that is a JSON object or array takes attributes as text
	// within strings and as JSON outside of them: '{"id":"{PK}","count":{n}}';
	// {$event}, {$table}, {$sequence}, {$eventId}, {$created}, {$new.path} and
	// {$old.path} stand for that of the record. An attribute that is not there
	// fails the record within a text, and is null outside of one. Default
	// record: event, table, sequence, keys, and new and old where there are some.
	Body string `yaml:"body"`
	// Delay before anybody receives it, up to 15m.
	Delay Duration `yaml:"delay"`
	// Group and Dedupe are templates for a FIFO queue. Defaults: the item's key;
	// the record's event id with the route's name. What SQS does not take there,
	// for its length or its characters, is hashed.
	Group  string `yaml:"group"`
	Dedupe string `yaml:"dedupe"`
}

// Project keeps a document of each item. Its fields are those of projection.Options.
type Project struct {
	// To is a sink, a cluster. Default: the only one.
	To string `yaml:"to"`
	// Index or alias; a template, such as orders-{region|lower}.
	Index string `yaml:"index"`
	// ID is a template, such as '{pk}|{sk}'.
	ID string `yaml:"id"`
	// Routing is a template.
	Routing string `yaml:"routing"`
	// HashLongIDs over 512 bytes.
	HashLongIDs bool `yaml:"hashLongIds"`
	// Version is "sequence", "none", or "attribute:<path>" of a number that
	// every change raises.
	Version string `yaml:"version"`
	// UnfencedBackfill takes SNAPSHOT records although version is none.
	UnfencedBackfill bool `yaml:"unfencedBackfill"`
	// Include paths. Default all.
	Include Strings `yaml:"include"`
	// Exclude paths, also within include.
	Exclude Strings `yaml:"exclude"`
	// Rename attributes: path to name.
	Rename Texts `yaml:"rename"`
	// Flatten maps into the document: path to prefix.
	Flatten Texts `yaml:"flatten"`
	// Fields stand before those of the item. A text is a template, and one of a
	// single attribute, such as "{price}", keeps its type; a number, true, false
	// or null is itself.
	Fields Fields `yaml:"fields"`
	// Tombstone leaves a document of these fields in the place of a deleted one.
	Tombstone Fields `yaml:"tombstone"`
	// WriteUnchanged writes documents that a change left as they were.
	WriteUnchanged bool `yaml:"writeUnchanged"`
}

// Cascade deletes children with their parent.
type Cascade struct {
	// Table of the parents. Default: the only one of source, or that of the entity
	// type, where entityType has tables.
	Table string `yaml:"table"`
	// Key are the parent's key attributes.
	Key Strings `yaml:"key"`
	// Children are the kinds of them.
	Children []Child `yaml:"children"`
	// Queue is a sink, a standard queue, that large cascades are handed to; it
	// is consumed, too. Without one a record deletes all itself.
	Queue string `yaml:"queue"`
	// Threshold is how many rows a record deletes itself, with a queue. Default 500.
	Threshold *int `yaml:"threshold"`
}

// Child is a kind of children.
type Child struct {
	// Name tells kinds in one table apart.
	Name string `yaml:"name"`
	// Table where they are.
	Table string `yaml:"table"`
	// Key are their key attributes.
	Key Strings `yaml:"key"`
	// Index by which they are found. Default: the table itself.
	Index string `yaml:"index"`
	// Partition is the attribute that holds the parent.
	Partition Attr `yaml:"partition"`
	// Sort narrows it to a prefix.
	Sort *Attr `yaml:"sort"`
}

// Attr is a child's attribute and the parent's that it is equal to.
type Attr struct {
	Name   string `yaml:"name"`   // of the children's attribute
	From   string `yaml:"from"`   // the parent's attribute, or dotted path
	Before string `yaml:"before"` // text that stands before it
	After  string `yaml:"after"`  // and after it
}

// Count keeps numbers on parents: an INSERT adds, a REMOVE takes away.
type Count struct {
	// ID names the count in its markers; it must never change.
	ID string `yaml:"id"`
	// Markers is the table that remembers which records were counted.
	Markers string `yaml:"markers"`
	// Life is how old a record can be and still count: a marker outlives it by an
	// hour. Default 72h, at least 25h; longer than records wait among the dead
	// letters.
	Life Duration `yaml:"life"`
	// Table of the children, for a recount. Default: the only one of source, or
	// that of the entity type, where entityType has tables.
	Table string `yaml:"table"`
	// Numbers are what is kept.
	Numbers []Counter `yaml:"numbers"`
	// DeleteOrphans deletes an item that was inserted when its parent in this
	// table, one of those of numbers, is not there. Default: it stays, and is not
	// counted there.
	DeleteOrphans string `yaml:"deleteOrphans"`
}

// Counter is a number on a parent.
type Counter struct {
	// Table of the parents.
	Table string `yaml:"table"`
	// Attribute that is the number.
	Attribute string `yaml:"attribute"`
	// Key of the parent, taken from the child: parent's attribute to child's.
	// A list names attributes that are called the same in both.
	Key KeyFrom `yaml:"key"`
	// Index is a global secondary index by which a recount finds the children of
	// a parent, and Partition the attribute of the children that is its partition
	// key. Default: the table of the children itself, or a table of another
	// number between the two.
	Index     string `yaml:"index"`
	Partition string `yaml:"partition"`
	// Of is the child's attribute that is summed. Default: children are counted.
	Of string `yaml:"of"`
	// When is an expression over new (the child) that it has to fulfil to be counted.
	When string `yaml:"when"`
	// Create the parent when it is not there.
	Create bool `yaml:"create"`
}

// Escalate tries one step after the other: "start" for the record that begins
// an escalation, "next" for one of an attempt that was made. What is tried is a
// message in a queue, for a consumer of yours, who writes the attempts:
// {"kind":"<kind>.attempt","escalation","ladder","step","order","number",
// "notBefore","dedupeKey"}, and at the end {"kind":"<kind>.expire",
// "escalation","ladder","notBefore","dedupeKey"}.
type Escalate struct {
	// Do is start or next.
	Do string `yaml:"do"`
	// Ladder has the names of attributes; a route of next may leave it out, when
	// there is one of start.
	Ladder *Ladder `yaml:"ladder"`
	// Kind begins the kinds of the messages. Default "escalation".
	Kind string `yaml:"kind"`
	// Queue is a sink that the messages go to, a standard queue. A route of next
	// may leave it out, as ladder.
	Queue string `yaml:"queue"`
	// ExpireAfter is how long after the last attempt the message of expiry is
	// for. Default 5m.
	ExpireAfter Duration `yaml:"expireAfter"`
}

// Ladder names the attributes of escalations, steps and attempts, all in one
// table, as escalation.Config has them.
type Ladder struct {
	// Table of all three. Default: the only one of source.
	Table string `yaml:"table"`
	// Key is the escalation's key: attribute to template, where {id} is its id.
	Key map[string]string `yaml:"key"`
	// Steps is the partition of the steps: attribute to template, where {ladder} is the ladder.
	Steps map[string]string `yaml:"steps"`
	// Escalation, Step and Attempt have attributes' names.
	Escalation EscalationNames `yaml:"escalation"`
	Step       StepNames       `yaml:"step"`
	Attempt    AttemptNames    `yaml:"attempt"`
}

// EscalationNames are attributes of an escalation.
type EscalationNames struct {
	ID      string `yaml:"id"`      // its id
	Ladder  string `yaml:"ladder"`  // the partition of its steps
	Started string `yaml:"started"` // RFC 3339
	Status  string `yaml:"status"`
	Active  string `yaml:"active"` // the status of one that still climbs
	Failed  string `yaml:"failed"` // the status of one whose ladder has no step; default "failed"
	Reason  string `yaml:"reason"` // takes the reason of that; default: it is not written down
}

// StepNames are attributes of a step.
type StepNames struct {
	TypeAttribute string `yaml:"typeAttribute"`
	Type          string `yaml:"type"`
	Enabled       string `yaml:"enabled"`
	ID            string `yaml:"id"`
	Order         string `yaml:"order"`
	WaitSeconds   string `yaml:"waitSeconds"`
}

// AttemptNames are attributes of an attempt.
type AttemptNames struct {
	Escalation string `yaml:"escalation"`
	Number     string `yaml:"number"`
	Order      string `yaml:"order"`
	StepID     string `yaml:"stepId"`
	At         string `yaml:"at"` // RFC 3339
}

// Log writes a line for each record.
type Log struct {
	// Level is debug, info, warn or error. Default info.
	Level string `yaml:"level"`
	// Message of the line. Default "record".
	Message string `yaml:"message"`
}
