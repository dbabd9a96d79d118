package config

import (
	"errors"
	"fmt"

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

// resolver finds the entity type of records.
func (t EntityType) resolver() (router.Resolver, error) {
	switch {
	case len(t.First) > 0:
		var chain []router.Resolver
		var errs []error
		for i, one := range t.First {
			r, err := one.resolver()
			if err != nil {
				errs = append(errs, fmt.Errorf("[%d]: %w", i, err))
			}
			chain = append(chain, r)
		}
		if err := errors.Join(errs...); err != nil {
			return router.Resolver{}, err
		}
		return router.Chain(chain...), nil
	case t.Attribute != "":
		return router.Attribute(t.Attribute), nil
	case t.Key != nil:
		_, err := keypattern.Parse(t.Key.Pattern)
		if t.Key.Attribute == "" {
			err = fmt.Errorf("key pattern %q: no attribute is named", t.Key.Pattern)
		}
		if err != nil {
			return router.Resolver{}, err
		}
		return router.KeyPattern(t.Key.Attribute, t.Key.Pattern), nil
	case t.Tables != nil:
		return router.Table(t.Tables), nil
	}
	return router.Attribute("entityType"), nil
}
