package config

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world records the effects of a file's handlers.
type world struct {
	tables *tabletest.World
	sent   []tabletest.Sent
	fail   error // error of the next effect
	index  *streamtest.Index
}

func newWorld() *world {
	return &world{tables: tabletest.NewWorld(time.Now()), index: streamtest.NewIndex()}
}

func (w *world) setup() Setup {
	return Setup{
		Logger: slog.New(slog.DiscardHandler),
		Fakes: Fakes{
			Tables: w.tables,
			Send: func(_ context.Context, queue string, m sluice.Message) error {
				if err := w.fail; err != nil {
					w.fail = nil
					return err
				}
				w.sent = append(w.sent, tabletest.Sent{Queue: queue, Message: m})
				return nil
			},
			Write: func(ctx context.Context, _ string, op document.Op) error { return w.index.Write(ctx, op) },
			Now:   w.tables.Now,
		},
	}
}

// build builds c, whose routes are all valid.
func (w *world) build(t *testing.T, c *Config) *App {
	t.Helper()
	app, err := build(t, c, w.setup())
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// to returns the messages sent to a queue.
func (w *world) to(queue string) (sent []tabletest.Sent) {
	for _, s := range w.sent {
		if s.Queue == queue {
			sent = append(sent, s)
		}
	}
	return sent
}

// one returns a file with one route for every record.
func one(rt Route) *Config {
	if rt.On == nil {
		rt.On = Strings{"*#*"}
	}
	if rt.Name == "" {
		rt.Name = "one"
	}
	return &Config{
		Source: Source{Tables: []string{"orders"}},
		Sinks: map[string]Sink{
			"jobs":   {SQS: &SQS{Queue: "jobs"}},
			"fifo":   {SQS: &SQS{Queue: "https://sqs.us-east-1.amazonaws.com/123456789012/jobs.fifo"}},
			"search": {OpenSearch: &OpenSearch{URLs: []string{"http://127.0.0.1:9200"}}},
		},
		Routes: []Route{rt},
	}
}

// fails builds c, and wants an error that contains each of the texts.
func fails(t *testing.T, c *Config, texts ...string) {
	t.Helper()
	_, err := build(t, c, newWorld().setup())
	if err == nil {
		t.Errorf("no error, want %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v\nwant %q", err, text)
		}
	}
}

// build makes an app of c. It parses c first, unless c was parsed.
func build(t *testing.T, c *Config, s Setup) (*App, error) {
	t.Helper()
	if c.doc == nil {
		var err error
		if c, err = Parse("f", "", []byte(inYAML(reflect.ValueOf(*c))), nil); err != nil {
			return nil, err
		}
	}
	return c.Build(t.Context(), s)
}

// inYAML writes a value as YAML.
func inYAML(v reflect.Value) string {
	var parts []string
	add := func(name, value string) { parts = append(parts, strconv.Quote(name)+": "+value) }
	switch of := v.Interface().(type) {
	case Duration:
		return of.String()
	case EntityType:
		if of.First != nil {
			return inYAML(reflect.ValueOf(of.First))
		}
	case Texts:
		for _, one := range of {
			add(one.Name, inYAML(reflect.ValueOf(one.Value)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case Fields:
		for _, one := range of {
			value := "null"
			if one.Value != nil {
				value = inYAML(reflect.ValueOf(one.Value))
			}
			add(one.Name, value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	switch v.Kind() {
	case reflect.Pointer:
		return inYAML(v.Elem())
	case reflect.String:
		return strconv.Quote(strings.ReplaceAll(v.String(), "$", "$$"))
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, inYAML(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		for _, key := range v.MapKeys() {
			add(key.String(), inYAML(v.MapIndex(key)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Struct:
		names, at := fieldsOf(v.Type())
		for _, name := range names {
			if f := v.Field(at[name]); !f.IsZero() {
				add(name, inYAML(f))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v.Interface())
}

// plain returns an item from plain JSON.
func plain(text string) sluice.Item {
	it, err := item.FromJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return it
}
