package config

// Route is one handler and what it is for. One of Send, Project, Cascade, Count,
// Escalate and Log is set.
type Route struct {
	// Name is unique; metrics, logs and dead letters have it.
	Name string `yaml:"name" is:"required"`
	// On are patterns of entity type and event: search#INSERT, search#*,
	// "*#REMOVE", orders#SNAPSHOT. A * as the event is INSERT, MODIFY and REMOVE.
	On Strings `yaml:"on" is:"required"`

	// When is an expression that a record has to fulfil, over new, old, keys,
	// event and table: new.status == "active" && old.status != new.status.
	When string `yaml:"when"`
	// Changed: one of these attributes (or dotted paths) has changed.
	Changed Strings `yaml:"changed"`
	// ChangedIgnoring: another attribute than these has changed.
	ChangedIgnoring Strings `yaml:"changedIgnoring"`
	// TTL deletions are to be left out ("exclude") or are all that is taken ("only").
	// Those that a global table replicates from another Region look like a user's.
	TTL string `yaml:"ttl" is:"one of=exclude|only"`
	// Regions of a global table whose writes are taken. Default all.
	Regions Strings `yaml:"regions"`

	// Attempts that a record fails at least before it is parked as poison. They
	// count while the route works for others; 10 minutes of that are needed, too.
	// Default 8.
	Attempts int `yaml:"attempts" is:"min=1" default:"8"`
	// Backoff between attempts.
	Backoff *Backoff `yaml:"backoff"`
	// Timeout of one call.
	Timeout Duration `yaml:"timeout" is:"min=1ms"`
	// Concurrency is how many records the route handles at once. Default: no limit of its own.
	Concurrency int `yaml:"concurrency" is:"min=1"`
	// Rate of calls.
	Rate *Rate `yaml:"rate"`
	// MaxAge of a record that keeps failing, before it is parked for its age,
	// whatever the state of the route; see deadLetter.maxAge.
	MaxAge Duration `yaml:"maxAge" is:"min=1s"`
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
	// Log writes a line for each record: a hash of its key, never its contents.
	Log *Log `yaml:"log"`
}

// Backoff between attempts: doubled each time, with full jitter.
type Backoff struct {
	// First wait. Default 100ms.
	First Duration `yaml:"first" is:"min=1ms" default:"100ms"`
	// Max wait. Default 30s.
	Max Duration `yaml:"max" is:"min=1ms" default:"30s"`
}

// Rate of calls.
type Rate struct {
	// PerSecond on average.
	PerSecond float64 `yaml:"perSecond" is:"required,above=0"`
	// Burst at once. Default 1.
	Burst int `yaml:"burst" is:"min=1" default:"1"`
}

// Send sends a message for each record.
type Send struct {
	// To is a sink, a queue.
	To string `yaml:"to" is:"required"`
	// Body is "record", "new", "old" or "keys" for that as plain JSON, or a
	// template. One that is a JSON object or array takes attributes as text
	// within strings and as JSON outside of them: '{"id":"{PK}","count":{n}}';
	// {$event}, {$table}, {$sequence}, {$eventId}, {$created}, {$new.path} and
	// {$old.path} stand for that of the record. An attribute that is not there
	// fails the record within a text, and is null outside of one. Default
	// record: event, table, sequence, keys, and new and old where there are some.
	Body string `yaml:"body" default:"record"`
	// Delay before anybody receives it, up to 15m.
	Delay Duration `yaml:"delay" is:"min=0s,max=15m"`
	// Group is a template of the message group in a FIFO queue. Default: the item's
	// key. What SQS does not take there, for its length or its characters, is hashed.
	Group string `yaml:"group"`
	// Dedupe is a template of the deduplication id in a FIFO queue, hashed as group
	// is. Default: the record's event id with the route's name.
	Dedupe string `yaml:"dedupe"`
}

// Project keeps a document of each item. Its fields are those of projection.Options.
type Project struct {
	// To is a sink, a cluster. Default: the only one.
	To string `yaml:"to"`
	// Index or alias; a template, such as orders-{region|lower}.
	Index string `yaml:"index" is:"required"`
	// MaxIndices is how many different names index makes from items, from the
	// start of the process on. Records for another name fail for good.
	MaxIndices int `yaml:"maxIndices" is:"min=1" default:"100"`
	// ID is a template, such as '{pk}|{sk}'.
	ID string `yaml:"id" is:"required"`
	// Routing is a template.
	Routing string `yaml:"routing"`
	// HashLongIDs over 512 bytes.
	HashLongIDs bool `yaml:"hashLongIds"`
	// Version is "sequence", "none", or "attribute:<path>" of a number or an ISO
	// 8601 time that every change raises. "seconds:<path>", "millis:<path>" and
	// "micros:<path>" are of a number that is a time since 1970, also with a
	// fraction. "attribute:<created>,<counter>" (or "seconds:…") is a pair: when
	// the item was made, and a number that begins anew with each item.
	Version string `yaml:"version" is:"required"`
	// Mark is the field in which a document says which change it shows, with
	// version: sequence. Default "sluice".
	Mark string `yaml:"mark"`
	// ForgetDeleted deletes documents with version: sequence, instead of leaving
	// tombstones: a record that comes again after index.gc_deletes brings one back.
	ForgetDeleted bool `yaml:"forgetDeleted"`
	// Only is an expression over new (the item) that says which items have
	// documents: new.status == "published". One that no longer fulfils it loses
	// its document. Default: all of the route's entity types.
	Only string `yaml:"only"`
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
	Key Strings `yaml:"key" is:"required"`
	// Children are the kinds of them.
	Children []Child `yaml:"children" is:"required"`
	// Queue is a sink, a standard queue, that large cascades are handed to; it
	// is consumed, too. Without one a record deletes all itself.
	Queue string `yaml:"queue"`
	// Threshold is how many rows a record deletes itself, with a queue. Default 500.
	Threshold *int `yaml:"threshold" is:"min=0" default:"500"`
}

// Child is a kind of children.
type Child struct {
	// Name tells kinds in one table apart.
	Name string `yaml:"name"`
	// Table where they are.
	Table string `yaml:"table" is:"required"`
	// Key are their key attributes.
	Key Strings `yaml:"key" is:"required"`
	// Index by which they are found. Default: the table itself.
	Index string `yaml:"index"`
	// Partition is the attribute that holds the parent.
	Partition Attr `yaml:"partition" is:"required"`
	// Sort narrows it to a prefix.
	Sort *Attr `yaml:"sort"`
	// NotNewer keeps children that were written after the parent was put again.
	// Then each delete is a request of its own, under a condition.
	NotNewer *Limit `yaml:"notNewer"`
}

// Limit says which children are old enough to go with their parent. One of from and
// time is set. A child without the attribute goes.
type Limit struct {
	// Name of the children's attribute, a number or text.
	Name string `yaml:"name" is:"required"`
	// From is the parent's attribute in its old image: a version that grows whenever
	// the parent is put again. A child goes if its own version is at most that.
	From string `yaml:"from"`
	// Time is the form of the time at which a child was written: seconds or
	// milliseconds since 1970, or rfc3339 in UTC. A child goes if that is before the
	// end of the second in which the parent was deleted.
	Time string `yaml:"time" is:"one of=seconds|milliseconds|rfc3339"`
}

// Attr is a child's attribute and the parent's that it is equal to.
type Attr struct {
	// Name of the children's attribute.
	Name string `yaml:"name" is:"required"`
	// From is the parent's attribute, or dotted path.
	From string `yaml:"from"`
	// Before is text that stands before it.
	Before string `yaml:"before"`
	// After is text that stands after it.
	After string `yaml:"after"`
}

// Count keeps numbers on parents: an INSERT adds, a REMOVE takes away.
type Count struct {
	// ID names the count in its markers; it must never change.
	ID string `yaml:"id" is:"required"`
	// Markers is the table that remembers which records were counted.
	Markers string `yaml:"markers" is:"required"`
	// Life is how old a record can be and still count: a marker outlives it by an
	// hour. Default 72h, at least 25h; longer than records wait among the dead
	// letters.
	Life Duration `yaml:"life" is:"min=25h" default:"72h"`
	// Table of the children, for a recount. Default: the only one of source, or
	// that of the entity type, where entityType has tables.
	Table string `yaml:"table"`
	// Numbers are what is kept.
	Numbers []Counter `yaml:"numbers" is:"required"`
	// DeleteOrphans deletes an item that was inserted when its parent in this
	// table, one of those of numbers, is not there. Default: it stays, and is not
	// counted there.
	DeleteOrphans string `yaml:"deleteOrphans"`
}

// Counter is a number on a parent.
type Counter struct {
	// Table of the parents.
	Table string `yaml:"table" is:"required"`
	// Attribute that is the number.
	Attribute string `yaml:"attribute" is:"required"`
	// Key of the parent, taken from the child: parent's attribute to child's.
	// A list names attributes that are called the same in both.
	Key KeyFrom `yaml:"key" is:"required"`
	// Index is a global secondary index, with all attributes, by which a recount
	// finds the children of a parent. Default: the table of the children itself, or a table of another
	// number between the two.
	Index string `yaml:"index"`
	// Partition is the attribute of the children that is the partition key of index.
	Partition string `yaml:"partition"`
	// Of is the child's attribute that is summed. Default: children are counted.
	Of string `yaml:"of"`
	// When is an expression over new (the child) that it has to fulfil to be counted.
	When string `yaml:"when"`
	// Create the parent when it is not there.
	Create bool `yaml:"create"`
}

// Escalate tries one step after the other: "start" for the record that begins
// an escalation, "next" for one of an attempt that was made, "resume" for one
// that was changed, "contact" for the messages of steps. These are, in a queue
// for a route of contact or a consumer of yours, who writes the attempts:
// {"kind":"<kind>.attempt","escalation","ladder","step","order","number",
// "notBefore","dedupeKey"}, and at the end {"kind":"<kind>.expire",
// "escalation","ladder","notBefore","dedupeKey"}; where they are not 0, "round"
// and "repeat" stand behind number.
type Escalate struct {
	// Do is start, next, resume or contact.
	Do string `yaml:"do" is:"required,one of=start|next|resume|contact"`
	// Ladder has the names of attributes; other routes than those of start may leave
	// it out, when there is one of start.
	Ladder *Ladder `yaml:"ladder"`
	// Kind begins the kinds of the messages. Default "escalation".
	Kind string `yaml:"kind" default:"escalation"`
	// Queue is a sink that the messages go to, a standard queue. Other routes than
	// those of start may leave it out, as ladder. It is consumed when there is a route
	// of contact.
	Queue string `yaml:"queue"`
	// ExpireAfter is how long after the last attempt the message of expiry is
	// for, or the ladder is repeated. Default 5m.
	ExpireAfter Duration `yaml:"expireAfter" is:"min=1s" default:"5m"`
	// Repeat is how often the ladder is climbed again. Default 0.
	Repeat int `yaml:"repeat" is:"min=0" default:"0"`
	// Watch is a sink, another standard queue, for the watchdog. It is consumed
	// without being named in source. Other routes than those of start may leave it
	// out, as ladder.
	Watch string `yaml:"watch"`
	// WatchAfter is how long overdue a step is when the watchdog sends it again and
	// raises an alarm. Default 15m.
	WatchAfter Duration `yaml:"watchAfter" is:"min=1m" default:"15m"`
	// Alarm is a sink, a queue, that takes alarms: {"kind":"<kind>.alarm",
	// "escalation","round","number","due","why","dedupeKey"}. Default: they are
	// errors in the log, which they are always. dedupeKey begins with the kind.
	Alarm string `yaml:"alarm"`
	// Contact says how a route of contact calls somebody.
	Contact *Contact `yaml:"contact"`
}

// Contact calls a URL for a step, or for each of its contacts: a POST whose header
// Idempotency-Key, "<kind>/<escalation>#<number>", is the same whenever it is made
// for the same attempt, and for no other. An answer
// 2xx is an attempt that was made. One that will stay the same (4xx but 408, 425
// and 429) has failed, and the next step has its turn; after any other it is made
// again. Templates have {escalation.<path>} and {step.<path>} of the two items,
// {contact}, {number}, {round}, {repeat} and {dedupeKey}.
type Contact struct {
	// URL is a template, such as '{step.url}'.
	URL string `yaml:"url" is:"required"`
	// Body is a template, as that of send. Default: {"kind":"<kind>.contact",
	// "escalation","ladder","step","contact","number","round","repeat","dedupeKey"},
	// contact where the step has several, round and repeat where they are not 0.
	Body string `yaml:"body"`
	// Timeout of a call, with the claim before it. Default 30s.
	Timeout Duration `yaml:"timeout" is:"min=1s" default:"30s"`
	// Lease is how long a step belongs to the process that tries it: after a crash it
	// is tried again when that is over. Default 2m.
	Lease Duration `yaml:"lease" is:"min=2s" default:"2m"`
	// GiveUpAfter is how long a call is made again that fails. Default 10m.
	GiveUpAfter Duration `yaml:"giveUpAfter" is:"min=1s" default:"10m"`
	// AllowHTTP allows URLs that are http, too.
	AllowHTTP bool `yaml:"allowHttp" default:"false"`
	// AllowPrivate allows addresses that are not public: loopback, private, link-local.
	AllowPrivate bool `yaml:"allowPrivate" default:"false"`
}

// Ladder names the attributes of escalations, steps and attempts, all in one
// table, as escalation.Config has them.
type Ladder struct {
	// Table of all three. Default: the only one of source.
	Table string `yaml:"table"`
	// Key is the escalation's key: attribute to template, where {id} is its id.
	Key map[string]string `yaml:"key" is:"required"`
	// Steps is the partition of the steps: attribute to template, where {ladder} is the ladder.
	Steps map[string]string `yaml:"steps" is:"required"`
	// Escalation has the names of its attributes.
	Escalation EscalationNames `yaml:"escalation" is:"required"`
	// Step has the names of its attributes.
	Step StepNames `yaml:"step" is:"required"`
	// Attempt has the names of its attributes.
	Attempt AttemptNames `yaml:"attempt" is:"required"`
}

// EscalationNames are attributes of an escalation.
type EscalationNames struct {
	// ID is the attribute of its id.
	ID string `yaml:"id" is:"required"`
	// Ladder is the attribute of its ladder: the partition of its steps.
	Ladder string `yaml:"ladder" is:"required"`
	// Started is the attribute of when it began, in RFC 3339.
	Started string `yaml:"started" is:"required"`
	// Status is the attribute of its status.
	Status string `yaml:"status" is:"required"`
	// Active is the status of one that still climbs.
	Active string `yaml:"active" is:"required"`
	// Failed is the status of one that Sluice has ended. Default failed.
	Failed string `yaml:"failed" default:"failed"`
	// Reason is the attribute of why: no_steps, bad_steps, no_response or nobody_called. Default: it is not written.
	Reason string `yaml:"reason"`
	// Round is the attribute of its round, a number that Sluice raises when a new round begins.
	Round string `yaml:"round" default:"round"`
	// RoundStarted is the attribute of when a later round began, which it writes.
	RoundStarted string `yaml:"roundStarted" default:"roundStarted"`
	// SnoozedUntil is the attribute of a time (RFC 3339) before which nobody is called.
	SnoozedUntil string `yaml:"snoozedUntil"`
	// ResumeAt is the attribute of an order: a round begins at the first step of this order or a later one.
	ResumeAt string `yaml:"resumeAt"`
	// Repeat is the attribute of a number that goes before the route's repeat.
	Repeat string `yaml:"repeat"`
}

// StepNames are attributes of a step.
type StepNames struct {
	// TypeAttribute tells, together with type, which items are steps. Default: all are.
	TypeAttribute string `yaml:"typeAttribute"`
	// Type is what the attribute of typeAttribute is in a step.
	Type string `yaml:"type"`
	// Enabled is the attribute (BOOL) without which a step is left out. Default: none is.
	Enabled string `yaml:"enabled"`
	// ID is the attribute of its id, unique in the ladder.
	ID string `yaml:"id" is:"required"`
	// Order is the attribute of its place, a whole number.
	Order string `yaml:"order" is:"required"`
	// WaitSeconds is the attribute of the time before it is tried.
	WaitSeconds string `yaml:"waitSeconds" is:"required"`
	// Contacts is the attribute of a list of texts (L or SS), which are called at the same time. A step without it is one contact. Default: every step is one contact.
	Contacts string `yaml:"contacts"`
}

// AttemptNames are the key and the attributes of an attempt.
type AttemptNames struct {
	// Key is the attempt's key: attribute to template, where {id} is the
	// escalation's id, {round} its round and {number} the attempt's number.
	Key map[string]string `yaml:"key" is:"required"`
	// Set are attributes that a route of contact adds, such as {entityType: attempt}.
	Set map[string]string `yaml:"set"`
	// Escalation is the attribute of the escalation's id.
	Escalation string `yaml:"escalation" is:"required"`
	// Number is the attribute of its number, from 0.
	Number string `yaml:"number" is:"required"`
	// Order is the attribute of the order of the step that was tried.
	Order string `yaml:"order" is:"required"`
	// StepID is the attribute of the id of the step that was tried.
	StepID string `yaml:"stepId" is:"required"`
	// At is the attribute of when it was made, in RFC 3339.
	At string `yaml:"at" is:"required"`
	// Round is the attribute of its round, 0 where it is missing.
	Round string `yaml:"round" default:"round"`
	// Repeat is the attribute with the number of the repeat, 0 if missing.
	Repeat string `yaml:"repeat" default:"repeat"`
	// Outcome is the attribute of what came of it: contacted, failed or skipped.
	Outcome string `yaml:"outcome" default:"outcome"`
	// Error is the attribute in which a route of contact keeps why a step has failed
	// or was skipped.
	Error string `yaml:"error" default:"error"`
}

// Log writes a line for each record.
type Log struct {
	// Level is debug, info, warn or error. Default info.
	Level string `yaml:"level" is:"one of=debug|info|warn|error" default:"info"`
	// Message of the line. Default "record".
	Message string `yaml:"message" default:"record"`
}
