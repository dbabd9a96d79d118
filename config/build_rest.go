package config

import "errors"

type ladder struct{}

var errNotYet = errors.New("not built yet")

func (b *builder) escalate(rt *Route, field string) (*built, error) {
	return nil, b.c.wrong(field, errNotYet)
}
