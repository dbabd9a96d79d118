package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/router"
)

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

// workerName is the route for the messages of cascades.
const workerName = cascade.Kind

// maxPlanned limits the rows that sluice explain counts for a cascade.
const maxPlanned = 10_000

func (o *Cascade) check(c *Config, path string, r *Route) {
	d := c.doc
	c.only(path, r, sluice.Remove)
	for i, on := range r.On {
		if strings.HasSuffix(on, "#*") {
			d.add(d.one(parent(path)+".on", i), "cascade is for items that are deleted; want #REMOVE in place of #*")
		}
	}
	c.ownTable(path+".table", r, o.Table, "the parents")
	c.key(path+".key", o.Key)
	if o.Queue != "" {
		c.standard(path+".queue", o.Queue)
	} else if o.Threshold != nil {
		d.add(path+".threshold", "it is for a cascade with a queue, which takes the other rows")
	}
	if _, there := d.at[path+".children"]; there && len(o.Children) == 0 {
		d.add(path+".children", "there is none")
	}
	for i, child := range o.Children {
		at := element(path+".children", i)
		c.key(at+".key", child.Key)
		if j := slices.IndexFunc(o.Children[:i], func(other Child) bool { return other.Name == child.Name }); j >= 0 {
			d.add(at+".name", "%s is that of children[%d], too; messages could not tell them apart", d.show(at+".name", child.Name), j)
		}
		if child.Index != "" && o.Queue == "" {
			d.add(at+".index", "children that are found by an index need a queue: an index lags, and what it did not show yet is looked for again later")
		}
		if child.Index == "" && len(child.Key) > 0 && child.Partition.Name != "" && child.Partition.Name != child.Key[0] {
			d.add(at+".partition.name", "%s is not the partition key of the children's table, %s; set index if they are found by one", d.show(at+".partition.name", child.Partition.Name), d.shown(d.one(at+".key", 0), child.Key[0]))
		}
		switch p, s := child.Partition, child.Sort; {
		case p.From == "" && (s == nil || s.From == ""):
			d.add(at+".partition.from", "it is missing; the children of one parent would be those of all")
		case p.From == "" && p.Before+p.After == "":
			d.add(at+".partition", "it has no value; want from or before")
		}
		if s := child.Sort; s != nil {
			switch {
			case s.Before+s.From+s.After == "":
				d.add(at+".sort", "it has no value; want from or before")
			case child.Index == "" && s.Name != "" && len(child.Key) > 0 && (len(child.Key) < 2 || s.Name != child.Key[1]):
				d.add(at+".sort.name", "%s is not the sort key of the children's table; set index if they are found by one", d.show(at+".sort.name", s.Name))
			case s.From != "" && s.After == "":
				d.add(at+".sort.after", "it is empty: the prefix of parent 1 would take the children of parent 12; want what separates, such as \"#\"")
			}
		}
	}
}

// key notes a list of attributes that is not a valid key.
func (c *Config) key(path string, key Strings) {
	if len(key) > 2 {
		c.doc.add(path, "it has %d names; want that of the partition key, and that of the sort key if there is one", len(key))
	}
}

func (o *Cascade) build(b *builder, path string, r *Route) (*built, error) {
	table := b.c.tableOf(r, o.Table)
	c := cascade.Config{Table: table, Key: o.Key, Threshold: cascade.Unlimited, Metrics: b.s.Metrics, Logger: b.s.Logger, Progress: b.s.Cascade}
	needsOld := false
	used := []string{table}
	for _, child := range o.Children {
		kind := cascade.Child{Name: child.Name, Table: child.Table, Key: child.Key, Index: child.Index, Partition: cascade.Attr(child.Partition)}
		if child.Sort != nil {
			kind.Sort = cascade.Attr(*child.Sort)
		}
		if child.NotNewer != nil {
			kind.NotNewer = cascade.Limit(*child.NotNewer)
		}
		for _, from := range []string{kind.Partition.From, kind.Sort.From, kind.NotNewer.From} {
			needsOld = needsOld || from != "" && !slices.Contains(o.Key, from)
		}
		used = append(used, child.Table)
		c.Children = append(c.Children, kind)
	}
	var q *queue
	if o.Queue != "" {
		b.sinks.users = append(b.sinks.users, workerName)
		q = b.sinks.queue(o.Queue)
		c.Send, c.Threshold = q.send, cascade.DefaultThreshold
		if o.Threshold != nil {
			c.Threshold = *o.Threshold
		}
	}
	store := b.sinks.use(path, used...)
	c.Get, c.Query, c.Delete = store.Get, store.Query, store.DeleteGuarded
	deletes, err := cascade.New(c)
	if err != nil {
		return nil, err
	}
	made := &built{handle: deletes.Remove, late: true}
	if q != nil {
		b.consume(q.name)
		b.worked = append(b.worked, deletes)
	}
	if needsOld {
		made.options = append(made.options, router.NeedsOld())
	}
	made.Cascade = deletes
	made.Explain = func(ctx context.Context, rec *sluice.Record) ([]Effect, error) {
		return b.planned(ctx, deletes, c.Threshold, q, rec)
	}
	return made, nil
}

// planned returns the effects that a cascade would have now.
func (b *builder) planned(ctx context.Context, c *cascade.Cascade, threshold int, q *queue, rec *sluice.Record) ([]Effect, error) {
	parent := rec.Keys
	if rec.Old.Exists() {
		parent = rec.Old
	}
	rows, all := map[string]int{}, 0
	for row, err := range c.Plan(ctx, parent) {
		if err != nil {
			return nil, err
		}
		rows[row.Table]++
		if all++; all == maxPlanned {
			break
		}
	}
	var effects []Effect
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		count := fmt.Sprintf("%d rows", rows[table])
		switch {
		case all == maxPlanned:
			count = "at least " + count
		case rows[table] == 1:
			count = "1 row"
		}
		does := "delete " + count + " of table " + table
		if q != nil && rows[table] > threshold {
			does += ", what a record does not delete itself by queue " + q.name
		}
		effects = append(effects, b.changed(does, table, rec.Keys))
	}
	return effects, nil
}

// addWorker adds the route for the messages of all cascades. One route serves all
// queues, because a message names its cascade.
func (b *builder) addWorker() error {
	if len(b.worked) == 0 {
		return nil
	}
	work, err := cascade.Worker(b.worked...)
	if err != nil {
		return b.c.wrong("routes", err)
	}
	sink := b.sinks.storeName
	return b.addOwn(work, BuiltRoute{
		Name: workerName, Kind: "cascade",
		Explain: func(_ context.Context, rec *sluice.Record) ([]Effect, error) {
			table, _ := rec.New.Lookup("table")
			key, _ := rec.New.Lookup("key")
			return []Effect{{
				Does: "delete the rows of table " + table.Str() + " that the message names, if their parent is gone",
				Sink: sink, Target: table.Str(), Key: string(key.AppendJSON(nil)),
			}}, nil
		},
	})
}
