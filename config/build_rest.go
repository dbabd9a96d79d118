package config

import "errors"

type worked struct{}
type ladder struct{}

var errNotYet = errors.New("not built yet")

func (b *builder) cascade(rt *Route, field string) (*built, error) {
	return nil, b.c.wrong(field, errNotYet)
}
func (b *builder) count(rt *Route, field string) (*built, error) {
	return nil, b.c.wrong(field, errNotYet)
}
func (b *builder) escalate(rt *Route, field string) (*built, error) {
	return nil, b.c.wrong(field, errNotYet)
}
func (b *builder) addWorker() error { return nil }
