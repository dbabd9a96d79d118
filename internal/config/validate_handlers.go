package config

import (
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/versiontext"
)

func (c *Config) validateSend(path string, r Route) {
	d, o := c.doc, r.Send
	if _, err := parseBody(o.Body); err != nil {
		d.add(path+".body", "%s", d.detail(path+".body", err))
	}
	for at, source := range map[string]string{path + ".group": o.Group, path + ".dedupe": o.Dedupe} {
		if _, err := parseText(source); source != "" && err != nil {
			d.add(at, "%s", d.detail(at, err))
		}
	}
	s, ok := c.sink(path+".to", o.To, "sqs")
	if !ok {
		return
	}
	fifo := strings.HasSuffix(s.SQS.Queue, ".fifo")
	switch {
	case fifo && o.Delay > 0:
		d.add(path+".delay", "a FIFO queue cannot delay single messages; take a standard queue, or the queue's own delay")
	case !fifo && o.Dedupe != "":
		d.add(path+".dedupe", "it is for FIFO queues, whose names end in .fifo")
	}
}

// versions explains what a projection has to choose.
const versions = "want sequence (the order of the stream; what most want), attribute:<path> (a number or an ISO 8601 time of the item that every change raises; also for what writes the index beside this), seconds:, millis: or micros:<path> (the same, a number that is a time since 1970), attribute:<path>,<counter> (when the item was made, and a number that every change raises and that begins anew with the next item), or none (the last write wins; no backfill beside the stream)"

func (c *Config) validateProject(path string, r Route) {
	d, o := c.doc, r.Project
	c.only(path, r, "project", sluice.Insert, sluice.Modify, sluice.Remove, sluice.Snapshot)
	switch clusters := c.ofKind("opensearch"); {
	case o.To != "":
		c.sink(path+".to", o.To, "opensearch")
	case len(clusters) == 0 && !d.bad["sinks"] && !d.badBelow("sinks"):
		d.add(path, "no sink is a cluster; declare one: sinks: {search: {opensearch: {urls: ['https://…']}}}")
	case len(clusters) > 1:
		d.add(path+".to", "it is missing, and several sinks are clusters; want %s", either(clusters))
	}

	if o.Only != "" {
		c.validateItemWhen(path+".only", o.Only)
	}
	if c.readsItem(r) {
		d.add(parent(path)+".when", "it reads the item, and a document of an item that no longer fulfils it would stay as it was; want project.only, which says which items have documents")
	}

	// The projection itself says what is wrong with each option alone.
	good := projection.Options{Index: "x", ID: "{x}", Version: projection.BySequence()}
	try := func(at string, change func(*projection.Options)) bool {
		one := good
		change(&one)
		_, err := projection.New(nil, one)
		if err != nil && !d.bad[at] {
			d.add(at, "%s", d.detail(at, trim(err)))
		}
		return err == nil
	}
	if o.Index != "" {
		try(path+".index", func(p *projection.Options) { p.Index = o.Index })
	}
	if o.ID != "" {
		try(path+".id", func(p *projection.Options) { p.ID = o.ID })
	}
	try(path+".routing", func(p *projection.Options) { p.Routing = o.Routing })
	for i, p := range o.Include {
		try(d.one(path+".include", i), func(all *projection.Options) { all.Include = []string{p} })
	}
	for i, p := range o.Exclude {
		try(d.one(path+".exclude", i), func(all *projection.Options) { all.Exclude = []string{p} })
	}
	for _, t := range o.Rename {
		try(join(path+".rename", t.Name), func(all *projection.Options) { all.Rename = []projection.Rename{{From: t.Name, To: t.Value}} })
	}
	for _, t := range o.Flatten {
		try(join(path+".flatten", t.Name), func(all *projection.Options) { all.Flatten = []projection.Flatten{{Path: t.Name, Prefix: t.Value}} })
	}
	for name, fields := range map[string]Fields{"fields": o.Fields, "tombstone": o.Tombstone} {
		for _, f := range fields {
			if text, ok := f.Value.(string); ok {
				try(join(join(path, name), f.Name), func(all *projection.Options) { all.First = []projection.Field{projection.Text(f.Name, text)} })
			}
		}
	}
	c.validateVersion(path, r)
	if d.badBelow(path) || d.bad[path+"?"] || d.hasBelow(path) {
		return
	}
	// What is wrong with them together only.
	all, err := o.options()
	if err == nil {
		_, err = projection.New(nil, all)
	}
	if err != nil {
		d.add(path, "%s", d.anyDetail(path, trim(err)))
	}
}

// trim leaves out of an error of package projection what its Field says better.
func trim(err error) error { return trimmed{err} }

type trimmed struct{ error }

func (t trimmed) Error() string {
	text := strings.TrimPrefix(t.error.Error(), "projection: ")
	if first, rest, ok := strings.Cut(text, ": "); ok && !strings.ContainsAny(first, " \"") {
		return rest
	}
	return text
}

func (c *Config) validateVersion(path string, r Route) {
	d, o := c.doc, r.Project
	at := path + ".version"
	switch _, err := versiontext.Parse(o.Version); {
	case o.Version == "":
	case err != nil:
		d.add(at, "%s is not allowed; %s", d.show(at, o.Version), versions)
	case o.Version == "none":
		if i := slices.IndexFunc(r.On, func(on string) bool { return strings.HasSuffix(on, "#SNAPSHOT") }); i >= 0 && !o.UnfencedBackfill {
			d.add(d.one(parent(path)+".on", i), "a backfill may read what is older than what the stream has written, and version none does not tell: take another version, or stop the writers and set unfencedBackfill")
		}
	}
	if o.UnfencedBackfill && o.Version != "none" && o.Version != "" {
		d.add(path+".unfencedBackfill", "it is for version none")
	}
}

// tables are the names of the tables that are read.
func (c *Config) tables() []string {
	var names []string
	for _, t := range c.Source.Tables {
		names = append(names, tableName(t))
	}
	return names
}

// shownTables are those as they stand in the file.
func (c *Config) shownTables() []string {
	names := c.tables()
	for i := range names {
		names[i] = c.doc.shown(c.doc.one("source.tables", i), names[i])
	}
	return names
}

// ownTable notes a table that is to be one of those that are read, or is to be
// said because there are several.
func (c *Config) ownTable(path string, r Route, table, whose string) {
	d, tables := c.doc, c.tables()
	switch {
	case len(tables) == 0 || d.bad["source"] || d.badBelow("source"):
	case table == "":
		if _, err := (&builder{c: c}).tableOf(&r, ""); err == nil {
			return
		}
		d.add(path, "it is missing, and neither source nor entityType leaves only one; say which has %s: %s", whose, either(c.shownTables()))
	case table != "" && !slices.Contains(tables, table):
		d.add(path, "the table %s is not read; %s", d.show(path, table), d.meant(path, table, c.shownTables()))
	}
}

// key notes what is no key of a table.
func (c *Config) key(path string, key Strings) {
	if len(key) > 2 {
		c.doc.add(path, "it has %d names; want that of the partition key, and that of the sort key if there is one", len(key))
	}
}

func (c *Config) validateCascade(path string, r Route) {
	d, o := c.doc, r.Cascade
	c.only(path, r, "cascade", sluice.Remove)
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
		d.add(path+".threshold", "it is for a cascade with a queue, which takes what is beyond it")
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

func (c *Config) validateCount(path string, r Route) {
	d, o := c.doc, r.Count
	c.only(path, r, "count", sluice.Insert, sluice.Modify, sluice.Remove)
	if c.readsItem(r) {
		d.add(parent(path)+".when", "it reads the item, of which new is nil in a REMOVE and old in an INSERT, so that what one adds the other would not take away; want when in each of numbers, which says which items count")
	}
	if strings.Contains(o.ID, "#") {
		d.add(path+".id", "%s has a '#', which ends it in the ids of markers", d.show(path+".id", o.ID))
	}
	if _, there := d.at[path+".numbers"]; there && len(o.Numbers) == 0 {
		d.add(path+".numbers", "there is none")
	}
	var parents, shown []string
	for i, n := range o.Numbers {
		at := element(path+".numbers", i)
		parents = append(parents, n.Table)
		shown = append(shown, d.shown(at+".table", n.Table))
		if len(n.Key) > 2 {
			d.add(at+".key", "it has %d attributes; want the partition key, and the sort key if there is one", len(n.Key))
		}
		if j := slices.IndexFunc(o.Numbers[:i], func(m Counter) bool { return m.Table == n.Table && m.Create != n.Create }); j >= 0 {
			d.add(at+".create", "it is unlike that of numbers[%d], which is of the same table: one item cannot be added to in both ways", j)
		}
		if (n.Index == "") != (n.Partition == "") {
			d.add(at, "index and partition go together, and one of them is missing")
		}
		if n.When != "" {
			c.validateItemWhen(at+".when", n.When)
		}
	}
	if t := o.DeleteOrphans; t != "" && len(parents) > 0 && !slices.Contains(parents, t) {
		d.add(path+".deleteOrphans", "%s is not a table of numbers; %s", d.show(path+".deleteOrphans", t), d.meant(path+".deleteOrphans", t, shown))
	}
	for i, other := range c.Routes {
		if other.Count != nil && other.Count != o && other.Count.ID == o.ID && other.Count.Markers == o.Markers && o.ID != "" && element("routes", i) < parent(path) {
			d.add(path+".id", "%s is that of %s.count, too: one would take what the other counted for its own", d.show(path+".id", o.ID), element("routes", i))
		}
	}
}

func (c *Config) validateEscalate(path string, r Route) {
	d, o := c.doc, r.Escalate
	if o.Do == "contact" {
		c.only(path, r, "escalate", sluice.Delivery)
		c.validateContact(path, o)
	} else {
		c.only(path, r, "escalate", sluice.Insert, sluice.Modify)
		if o.Contact != nil && o.Do != "" && !d.bad[path+".do"] {
			d.add(path+".contact", "it is for a route of contact")
		}
	}
	c.standard(path+".queue", o.Queue)
	c.standard(path+".watch", o.Watch)
	if o.Alarm != "" {
		c.sink(path+".alarm", o.Alarm, "sqs")
	}
	started := slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Escalate != nil && r.Escalate.Do == "start" })
	for _, f := range []struct {
		name    string
		missing bool
	}{{"ladder", o.Ladder == nil}, {"queue", o.Queue == ""}, {"watch", o.Watch == ""}} {
		name := f.name
		if f.missing && !d.bad[path+"?"] && !d.bad[path+"."+name] && o.Do != "" && !d.bad[path+".do"] && (o.Do == "start" || !started) {
			d.add(path+"."+name, "it is missing; only other routes than those of start may leave it out, and take that of start")
		}
	}
	if l := o.Ladder; l != nil {
		c.ownTable(path+".ladder.table", r, l.Table, "the escalations")
		if (l.Step.TypeAttribute == "") != (l.Step.Type == "") {
			d.add(path+".ladder.step", "typeAttribute and type go together, and one of them is missing")
		}
	}
}

func (c *Config) validateContact(path string, o *Escalate) {
	d := c.doc
	if o.Contact == nil {
		if !d.bad[path+"?"] && !d.bad[path+".contact"] {
			d.add(path+".contact", "it is missing; a route of contact calls its url")
		}
		return
	}
	if _, err := parseText(o.Contact.URL); err != nil {
		d.add(path+".contact.url", "%s", d.detail(path+".contact.url", err))
	}
	if o.Contact.Body != "" {
		if _, err := parseBody(o.Contact.Body); err != nil {
			d.add(path+".contact.body", "%s", d.detail(path+".contact.body", err))
		}
	}
}
