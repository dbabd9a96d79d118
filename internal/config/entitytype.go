package config

import (
	"github.com/sluicehq/sluice/internal/keypattern"
	"github.com/sluicehq/sluice/router"
)

// EntityType says where the entity type is. Set one field. A text is an attribute; a
// list is tried in order.
type EntityType struct {
	// Attribute that has the type.
	Attribute string `yaml:"attribute"`
	// Pattern that finds the type in a key attribute.
	Key *KeyPattern `yaml:"key"`
	// Type of each table, by its name.
	Tables map[string]string `yaml:"tables"`
	// First is the list form: the first that finds a type decides.
	First []EntityType `yaml:"-"`
}

// KeyPattern finds the type in a key attribute.
type KeyPattern struct {
	// Key attribute.
	Attribute string `yaml:"attribute" is:"required"`
	// Pattern, such as "{type}#*".
	Pattern string `yaml:"pattern" is:"required"`
}

func (c *Config) validateType(path string, t EntityType) {
	d := c.doc
	n := 0
	for _, set := range []bool{t.Attribute != "", t.Key != nil, t.Tables != nil, t.First != nil} {
		if set {
			n++
		}
	}
	if _, there := d.at[path]; there && n != 1 && !d.bad[path+"?"] && !d.bad[path+".tables?"] && !d.badBelow(path) {
		d.add(path, "want one of attribute, key and tables, and there are %d", n)
	}
	if t.Key != nil {
		if _, err := keypattern.Parse(t.Key.Pattern); err != nil && t.Key.Attribute != "" {
			c.note(path+".key.pattern", err)
		}
	}
	for table, typ := range t.Tables {
		if typ == "" {
			d.add(join(path+".tables", table), "the type is empty")
		}
	}
	for i, one := range t.First {
		c.validateType(element(path, i), one)
	}
}

// resolver finds the entity type of records; by the default if the file's is wrong.
func (t EntityType) resolver() router.Resolver {
	switch {
	case len(t.First) > 0:
		var chain []router.Resolver
		for _, one := range t.First {
			chain = append(chain, one.resolver())
		}
		return router.Chain(chain...)
	case t.Attribute != "":
		return router.Attribute(t.Attribute)
	case t.Key != nil && t.Key.Attribute != "":
		if _, err := keypattern.Parse(t.Key.Pattern); err == nil {
			return router.KeyPattern(t.Key.Attribute, t.Key.Pattern)
		}
	case t.Tables != nil:
		return router.Table(t.Tables)
	}
	return router.Attribute("entityType")
}
