package config

// Route says which records one handler gets. Set one of send, project, cascade,
// count, escalate and log.
type Route struct {
	// Unique name in metrics, logs and dead letters.
	Name string `yaml:"name" is:"required"`
	// Entity type and event: search#INSERT, "*#REMOVE". Event * is INSERT, MODIFY and
	// REMOVE.
	On Strings `yaml:"on" is:"required"`

	// Expression that a record must fulfil.
	When string `yaml:"when"`
	// One of these attributes (or dotted paths) has changed.
	Changed Strings `yaml:"changed"`
	// Another attribute than these has changed.
	ChangedIgnoring Strings `yaml:"changedIgnoring"`
	// Deletions by time to live: leave out, or take only these.
	TTL string `yaml:"ttl" is:"one of=exclude|only"`
	// Regions of a global table to take writes from. Default all.
	Regions Strings `yaml:"regions"`

	// Failures before a record is parked, in a time (poisonAfter) in which the route
	// works for others. Default 8.
	Attempts int `yaml:"attempts" is:"min=1" default:"8"`
	// Time for which the item of a record fails before it is parked. Default 10m.
	PoisonAfter Duration `yaml:"poisonAfter" is:"min=1s" default:"10m"`
	// Waits between attempts.
	Backoff *Backoff `yaml:"backoff"`
	// Time limit of a call. Default none.
	Timeout Duration `yaml:"timeout" is:"min=1ms"`
	// Records handled at once. Default: no limit.
	Concurrency int `yaml:"concurrency" is:"min=1"`
	// Rate of calls.
	Rate *Rate `yaml:"rate"`
	// Age at which a failing record is parked. Default: deadLetter.maxAge.
	MaxAge Duration `yaml:"maxAge" is:"min=1s"`
	// Allow redrives although the item may have changed. Default: false for send and
	// for project without a version, else true.
	Redrive *bool `yaml:"redrive"`

	// Send a message for each record.
	Send *Send `yaml:"send"`
	// Keep a document for each item.
	Project *Project `yaml:"project"`
	// Delete children with their parent.
	Cascade *Cascade `yaml:"cascade"`
	// Keep numbers on parents.
	Count *Count `yaml:"count"`
	// Call one contact after another.
	Escalate *Escalate `yaml:"escalate"`
	// Write a log line for each record.
	Log *Log `yaml:"log"`
}

// Backoff is the wait between attempts. It doubles each time, with full jitter.
type Backoff struct {
	// First wait. Default 100ms.
	First Duration `yaml:"first" is:"min=1ms" default:"100ms"`
	// Longest wait. Default 30s.
	Max Duration `yaml:"max" is:"min=1ms" default:"30s"`
}

// Rate limits calls.
type Rate struct {
	// Calls a second on average.
	PerSecond float64 `yaml:"perSecond" is:"required,above=0"`
	// Calls at once. Default 1.
	Burst int `yaml:"burst" is:"min=1" default:"1"`
}

// Send sends a message for each record.
type Send struct {
	// Sink of a queue.
	To string `yaml:"to" is:"required"`
	// "record" (event, table, sequence, keys, new, old), "new", "old", "keys", or a
	// template: '{"id":"{PK}","was":{$old.status}}'. A missing attribute is null;
	// within a text it fails the record. Default record.
	Body string `yaml:"body" default:"record"`
	// Delay of the message.
	Delay Duration `yaml:"delay" is:"min=0s,max=15m"`
	// Template of a FIFO queue's message group. Default: the item's key.
	Group string `yaml:"group"`
	// Template of a FIFO queue's deduplication id. Default: event id and route.
	Dedupe string `yaml:"dedupe"`
}

// Project keeps a document for each item.
type Project struct {
	// Sink of a cluster. Default: the only one.
	To string `yaml:"to"`
	// Index or alias, or a template: orders-{region|lower}.
	Index string `yaml:"index" is:"required"`
	// Most names that index may make in a process. Default 100.
	MaxIndices int `yaml:"maxIndices" is:"min=1" default:"100"`
	// Template, such as '{pk}|{sk}'.
	ID string `yaml:"id" is:"required"`
	// Template of the routing.
	Routing string `yaml:"routing"`
	// Hash ids over 512 bytes.
	HashLongIDs bool `yaml:"hashLongIds"`
	// "sequence", "none", or "attribute:<path>": a number or ISO 8601 time that
	// every change raises. "seconds:", "millis:" or "micros:<path>": a number that
	// is a time since 1970. "attribute:<created>,<counter>": a counter that may
	// restart with each item.
	Version string `yaml:"version" is:"required"`
	// Field of the sequence that a document shows, with version: sequence. Default
	// sluice.
	Mark string `yaml:"mark"`
	// Leave no tombstones, with version: sequence. A late record can then restore a
	// document.
	ForgetDeleted bool `yaml:"forgetDeleted"`
	// Expression over new (the item), such as new.status == "published": only these
	// items have documents.
	Only string `yaml:"only"`
	// Take SNAPSHOT records although version is none.
	UnfencedBackfill bool `yaml:"unfencedBackfill"`
	// Paths to write. Default all.
	Include Strings `yaml:"include"`
	// Paths to leave out; wins over include.
	Exclude Strings `yaml:"exclude"`
	// New names of attributes: path to name.
	Rename Texts `yaml:"rename"`
	// Maps whose attributes go into the document: path to prefix.
	Flatten Texts `yaml:"flatten"`
	// Fields before those of the item. A text is a template; "{price}" alone keeps
	// its type.
	Fields Fields `yaml:"fields"`
	// Fields of the document that replaces a deleted one.
	Tombstone Fields `yaml:"tombstone"`
	// Write documents that a change leaves as they were.
	WriteUnchanged bool `yaml:"writeUnchanged"`
}

// Cascade deletes children with their parent.
type Cascade struct {
	// Table of the parents. Default: the only one of source, or that of the entity
	// type.
	Table string `yaml:"table"`
	// Key attributes of the parent.
	Key Strings `yaml:"key" is:"required"`
	// Kinds of children.
	Children []Child `yaml:"children" is:"required"`
	// Sink of a standard queue for large cascades; Sluice consumes it.
	Queue string `yaml:"queue"`
	// Rows that a record deletes itself, with a queue. Default 500.
	Threshold *int `yaml:"threshold" is:"min=0" default:"500"`
}

// Child is a kind of children.
type Child struct {
	// Name, if a table has several kinds.
	Name string `yaml:"name"`
	// Table of the children.
	Table string `yaml:"table" is:"required"`
	// Their key attributes.
	Key Strings `yaml:"key" is:"required"`
	// Index that finds them. Default: the table.
	Index string `yaml:"index"`
	// Attribute that holds the parent.
	Partition Attr `yaml:"partition" is:"required"`
	// Prefix of the sort key.
	Sort *Attr `yaml:"sort"`
	// Keep children newer than a parent that exists again.
	NotNewer *Limit `yaml:"notNewer"`
}

// Limit keeps newer children. Set from or time. A child without the attribute is
// deleted.
type Limit struct {
	// Children's attribute, a number or text.
	Name string `yaml:"name" is:"required"`
	// Attribute of the deleted parent: a version. Children up to it are deleted.
	From string `yaml:"from"`
	// Form of the children's time (UTC). Children up to the second of the parent's
	// deletion are deleted.
	Time string `yaml:"time" is:"one of=seconds|milliseconds|rfc3339"`
}

// Attr is an attribute of the children that equals one of the parent.
type Attr struct {
	// Attribute of the children.
	Name string `yaml:"name" is:"required"`
	// Attribute of the parent, or dotted path.
	From string `yaml:"from"`
	// Text before it.
	Before string `yaml:"before"`
	// Text after it.
	After string `yaml:"after"`
}

// Count keeps numbers on parents. An INSERT adds, a REMOVE subtracts.
type Count struct {
	// Name of the count in its markers; never change it.
	ID string `yaml:"id" is:"required"`
	// Table of the records that were counted.
	Markers string `yaml:"markers" is:"required"`
	// Age up to which a record counts; longer than dead letters wait. Default 72h.
	Life Duration `yaml:"life" is:"min=25h" default:"72h"`
	// Table of the children, for a recount. Default: the only one of source, or that
	// of the entity type.
	Table string `yaml:"table"`
	// Numbers to keep.
	Numbers []Counter `yaml:"numbers" is:"required"`
	// Table of numbers. A child inserted without its parent there is deleted.
	// Default: it stays, uncounted.
	DeleteOrphans string `yaml:"deleteOrphans"`
}

// Counter is a number on a parent.
type Counter struct {
	// Table of the parents.
	Table string `yaml:"table" is:"required"`
	// Attribute of the number.
	Attribute string `yaml:"attribute" is:"required"`
	// Key of the parent: parent's attribute to child's, or a list.
	Key KeyFrom `yaml:"key" is:"required"`
	// Global secondary index, with all attributes, for a recount. Default: the
	// children's table.
	Index string `yaml:"index"`
	// Children's attribute that is the partition key of index.
	Partition string `yaml:"partition"`
	// Attribute to sum. Default: count children.
	Of string `yaml:"of"`
	// Expression over new (the child): which children count.
	When string `yaml:"when"`
	// Create a missing parent.
	Create bool `yaml:"create"`
}

// Escalate calls one contact after another. Its messages have the kinds
// <kind>.attempt and <kind>.expire.
type Escalate struct {
	// start: new escalation; next: attempt; resume: changed escalation; contact:
	// messages.
	Do string `yaml:"do" is:"required,one of=start|next|resume|contact"`
	// Names of attributes (start).
	Ladder *Ladder `yaml:"ladder"`
	// Beginning of the messages' kinds. Default escalation.
	Kind string `yaml:"kind" default:"escalation"`
	// Sink of a standard queue for the messages (start).
	Queue string `yaml:"queue"`
	// Time from the last attempt to the end or the repeat. Default 5m.
	ExpireAfter Duration `yaml:"expireAfter" is:"min=1s" default:"5m"`
	// Times that the ladder is repeated. Default 0.
	Repeat int `yaml:"repeat" is:"min=0" default:"0"`
	// Sink of another standard queue, for the watchdog (start).
	Watch string `yaml:"watch"`
	// Delay after which the watchdog sends a step again, with an alarm. Default 15m.
	WatchAfter Duration `yaml:"watchAfter" is:"min=1m" default:"15m"`
	// Sink of a queue for alarms:
	// {"kind":"<kind>.alarm","escalation","round","number","due","why","dedupeKey"}.
	// The log has them, too.
	Alarm string `yaml:"alarm"`
	// How a contact route calls.
	Contact *Contact `yaml:"contact"`
}

// Contact calls a URL. A POST for a step, or for each of its contacts, with
// Idempotency-Key. 2xx: taken. 4xx but 408, 425 and 429: refused, the next step has
// its turn. Else: tried again. Templates have {escalation.<path>}, {step.<path>},
// {contact}, {number}, {round}, {repeat} and {dedupeKey}.
type Contact struct {
	// Template, such as '{step.url}'.
	URL string `yaml:"url" is:"required"`
	// Template, as in send. Default:
	// {"kind":"<kind>.contact","escalation","ladder","step","contact","number","round","repeat","dedupeKey"};
	// contact if the step has several, round and repeat if not 0.
	Body string `yaml:"body"`
	// Time limit of a call. Default 30s.
	Timeout Duration `yaml:"timeout" is:"min=1s" default:"30s"`
	// Time that a process owns a step. After a crash the step is tried again then.
	// Default 2m.
	Lease Duration `yaml:"lease" is:"min=2s" default:"2m"`
	// Time for which a failing call is tried again. Default 10m.
	GiveUpAfter Duration `yaml:"giveUpAfter" is:"min=1s" default:"10m"`
	// Allow http. Default false.
	AllowHTTP bool `yaml:"allowHttp" default:"false"`
	// Allow private, loopback and link-local addresses. Default false.
	AllowPrivate bool `yaml:"allowPrivate" default:"false"`
}

// Ladder names attributes. Escalations, steps and attempts are all in one table.
type Ladder struct {
	// Table of all three. Default: the only one of source.
	Table string `yaml:"table"`
	// Key of the escalation: attribute to template; {id} is its id.
	Key map[string]string `yaml:"key" is:"required"`
	// Partition of the steps: attribute to template; {ladder} is the ladder.
	Steps map[string]string `yaml:"steps" is:"required"`
	// Attributes of escalations.
	Escalation EscalationNames `yaml:"escalation" is:"required"`
	// Attributes of steps.
	Step StepNames `yaml:"step" is:"required"`
	// Attributes of attempts.
	Attempt AttemptNames `yaml:"attempt" is:"required"`
}

// EscalationNames are attributes of an escalation. Active and failed are values of
// its status.
type EscalationNames struct {
	// Id.
	ID string `yaml:"id" is:"required"`
	// Ladder: partition of the steps.
	Ladder string `yaml:"ladder" is:"required"`
	// Start, in RFC 3339.
	Started string `yaml:"started" is:"required"`
	// Status.
	Status string `yaml:"status" is:"required"`
	// Status while the escalation goes on.
	Active string `yaml:"active" is:"required"`
	// Status that Sluice sets at the end. Default failed.
	Failed string `yaml:"failed" default:"failed"`
	// Reason: no_steps, bad_steps, no_response or nobody_called. Default: not
	// written.
	Reason string `yaml:"reason"`
	// Round, a number that Sluice raises. Default round.
	Round string `yaml:"round" default:"round"`
	// Start of a later round; Sluice writes it. Default roundStarted.
	RoundStarted string `yaml:"roundStarted" default:"roundStarted"`
	// Time (RFC 3339) before which nobody is called.
	SnoozedUntil string `yaml:"snoozedUntil"`
	// Order of the step at which a round begins.
	ResumeAt string `yaml:"resumeAt"`
	// Number that wins over the route's repeat.
	Repeat string `yaml:"repeat"`
}

// StepNames are attributes of a step.
type StepNames struct {
	// Attribute whose value type marks steps. Default: all items are steps.
	TypeAttribute string `yaml:"typeAttribute"`
	// Value of typeAttribute in a step.
	Type string `yaml:"type"`
	// BOOL that a step needs.
	Enabled string `yaml:"enabled"`
	// Id, unique in the ladder.
	ID string `yaml:"id" is:"required"`
	// Place, a whole number.
	Order string `yaml:"order" is:"required"`
	// Seconds before the step is tried.
	WaitSeconds string `yaml:"waitSeconds" is:"required"`
	// List (L or SS) of contacts to call at the same time.
	Contacts string `yaml:"contacts"`
}

// AttemptNames are the key and the attributes of an attempt.
type AttemptNames struct {
	// Key: attribute to template of {id} (escalation), {round} and {number}.
	Key map[string]string `yaml:"key" is:"required"`
	// Attributes that a contact route adds: {entityType: attempt}.
	Set map[string]string `yaml:"set"`
	// Id of the escalation.
	Escalation string `yaml:"escalation" is:"required"`
	// Number, from 0.
	Number string `yaml:"number" is:"required"`
	// Order of the step.
	Order string `yaml:"order" is:"required"`
	// Id of the step.
	StepID string `yaml:"stepId" is:"required"`
	// Time, in RFC 3339.
	At string `yaml:"at" is:"required"`
	// Round; 0 if missing. Default round.
	Round string `yaml:"round" default:"round"`
	// Number of the repeat; 0 if missing. Default repeat.
	Repeat string `yaml:"repeat" default:"repeat"`
	// Outcome: contacted, failed or skipped. Default outcome.
	Outcome string `yaml:"outcome" default:"outcome"`
	// Why a step failed or was skipped. Default error.
	Error string `yaml:"error" default:"error"`
}

// Log writes a line for each record, with a hash of its key.
type Log struct {
	// Level of the line. Default info.
	Level string `yaml:"level" is:"one of=debug|info|warn|error" default:"info"`
	// Text of the line. Default record.
	Message string `yaml:"message" default:"record"`
}
