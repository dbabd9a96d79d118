package router

import (
	"bytes"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// When passes only records for which f reports true. f must be safe for concurrent
// use, fast, and depend only on the record. If it reads images, add [NeedsNew],
// [NeedsOld] or [NeedsBoth].
func When(f func(*sluice.Record) bool) Option {
	return func(c *config) {
		if f == nil {
			c.fail("When(nil): want a function")
			return
		}
		c.filter("When", f)
	}
}

// Changed passes only records that change at least one of the attributes, or
// dotted paths into maps and lists: set, removed, or with another value. An
// attribute of an INSERT or a SNAPSHOT counts as changed. A REMOVE changes
// nothing.
func Changed(paths ...string) Option {
	return compare("Changed", paths, func(old, new item.Value, hadOld, hasNew bool) bool {
		return hadOld != hasNew || hasNew && !old.Equal(new)
	})
}

// Set passes only records that add at least one of the attributes, or dotted
// paths: absent before and present now.
func Set(paths ...string) Option {
	return compare("Set", paths, func(_, _ item.Value, hadOld, hasNew bool) bool {
		return hasNew && !hadOld
	})
}

func compare(option string, paths []string, differ func(old, new item.Value, hadOld, hasNew bool) bool) Option {
	return func(c *config) {
		if len(paths) == 0 || slices.Contains(paths, "") {
			c.fail("%s(%q): want at least one attribute, none empty", option, paths)
			return
		}
		paths := slices.Clone(paths)
		c.route.reads |= item.BothImages
		c.filter(option, func(rec *sluice.Record) bool {
			if rec.EventName == sluice.Remove {
				return false
			}
			for _, path := range paths {
				old, hadOld := rec.Old.Lookup(path)
				new, hasNew := rec.New.Lookup(path)
				if differ(old, new, hadOld, hasNew) {
					return true
				}
			}
			return false
		})
	}
}

// replication is the prefix of the attributes that a global table (version
// 2017.11.29) adds to items by a MODIFY of its own.
const replication = "aws:rep:"

// ChangedIgnoring drops a MODIFY that changes only the given attributes, such as a
// time stamp, or the attributes of a global table (aws:rep:…). Without arguments
// it drops changes by replication alone. Records of other events pass.
func ChangedIgnoring(attributes ...string) Option {
	return func(c *config) {
		if slices.Contains(attributes, "") {
			c.fail("ChangedIgnoring(%q): want attributes that are not empty", attributes)
			return
		}
		ignored := make(map[string]bool, len(attributes))
		for _, a := range attributes {
			ignored[a] = true
		}
		skip := func(name []byte) bool {
			return ignored[string(name)] || bytes.HasPrefix(name, []byte(replication))
		}
		c.route.reads |= item.BothImages
		c.filter("ChangedIgnoring", func(rec *sluice.Record) bool {
			return rec.EventName != sluice.Modify || !rec.Old.EqualBut(rec.New, skip)
		})
	}
}

// ExcludeTTL drops deletions by TTL. For deletions that a global table replicated,
// see [sluice.Record.IsTTL].
func ExcludeTTL() Option { return onTTL("ExcludeTTL", false) }

// OnlyTTL passes only deletions by TTL. For deletions that a global table
// replicated, see [sluice.Record.IsTTL].
func OnlyTTL() Option { return onTTL("OnlyTTL", true) }

func onTTL(option string, want bool) Option {
	return func(c *config) {
		if c.onTTL != "" && c.onTTL != option {
			c.fail("%s and %s: no record passes both", c.onTTL, option)
			return
		}
		c.onTTL = option
		c.filter(option, func(rec *sluice.Record) bool { return rec.IsTTL() == want })
	}
}

// Regions passes only changes made in one of the given Regions. Global tables of
// version 2017.11.29 keep that Region in the attribute aws:rep:updateregion; a
// record without it counts for the Region of its stream. Global tables of version
// 2019.11.21 do not report it: write the Region into your own attribute and use
// [When].
func Regions(regions ...string) Option {
	return func(c *config) {
		if len(regions) == 0 || slices.Contains(regions, "") {
			c.fail("Regions(%q): want at least one Region, none empty", regions)
			return
		}
		regions := slices.Clone(regions)
		c.readsImage = true
		c.filter("Regions", func(rec *sluice.Record) bool {
			region := rec.Region
			if v, ok := image(rec).Lookup(replication + "updateregion"); ok {
				region = v.Str()
			}
			return slices.Contains(regions, region)
		})
	}
}
