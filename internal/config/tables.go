package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// account is one account with tables of handlers.
type account struct {
	cfg aws.Config
	*dynamodb.Store
}

// reads reports whether source names a table.
func (c *Config) reads(table string) bool {
	return slices.ContainsFunc(c.Source.Tables, func(t string) bool { return tableName(t) == table })
}

// of returns the account of a table.
func (s *sinks) of(table string) account {
	if s.apart == nil || s.c.reads(table) {
		return s.source
	}
	return *s.apart
}

// together returns an error if tables that one transaction needs are in several
// accounts.
func (s *sinks) together(field string, tables ...string) error {
	if s.apart == nil {
		return nil
	}
	if err := s.c.oneSide(tables); err != nil {
		return s.c.wrong(field, err)
	}
	return nil
}

// oneSide returns an error if source names some of the tables and not all.
func (c *Config) oneSide(tables []string) error {
	var source, other []string
	for _, t := range tables {
		if c.reads(t) {
			source = append(source, t)
		} else {
			other = append(other, t)
		}
	}
	if len(source) == 0 || len(other) == 0 {
		return nil
	}
	return fmt.Errorf("one transaction changes %s, which source names, and %s of aws of the dynamodb sink: want all in one account", strings.Join(source, ", "), strings.Join(other, ", "))
}

// split are tables of two accounts.
type split struct{ *sinks }

func (s split) Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error) {
	return s.of(table).Get(ctx, table, key)
}

func (s split) Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error) {
	return s.of(q.Table).Query(ctx, q)
}

func (s split) Write(ctx context.Context, op dynamo.Op) error { return s.of(op.Table).Write(ctx, op) }

func (s split) DeleteGuarded(ctx context.Context, d dynamo.GuardedDelete) {
	s.of(d.Table).DeleteGuarded(ctx, d)
}

func (s split) KeyNames(ctx context.Context, table string) ([]string, error) {
	return s.of(table).KeyNames(ctx, table)
}

func (s split) Once(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error) {
	tables := []string{u.Marker.Table}
	for _, a := range u.Adds {
		tables = append(tables, a.Table)
	}
	for _, op := range u.Ops {
		tables = append(tables, op.Table)
	}
	if err := s.c.oneSide(tables); err != nil {
		return dynamo.Applied{}, sluice.Permanent(err)
	}
	return s.of(u.Marker.Table).Once(ctx, u)
}

func (s split) Transact(ctx context.Context, ops ...dynamo.Op) error {
	var tables []string
	for _, op := range ops {
		tables = append(tables, op.Table)
	}
	if len(ops) == 0 {
		return errors.New("a transaction has no operation")
	}
	if err := s.c.oneSide(tables); err != nil {
		return sluice.Permanent(err)
	}
	return s.of(ops[0].Table).Transact(ctx, ops...)
}
