package meadowlark

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// Connect returns Meadowlark's routes on their table, indices and queues.
func Connect(s run.Setup) (*router.Router, error) {
	d := Deps{Table: writer.DefaultTable, Resources: Resources(), IndexPrefix: s.Env("MEADOWLARK_INDEX_PREFIX"), Logger: s.Logger}
	switch len(s.Tables) {
	case 0:
	case 1:
		d.Table = s.Tables[0]
	default:
		return nil, fmt.Errorf("meadowlark keeps documents and references in one table; want one in --table (SLUICE_TABLES), not %d: %s", len(s.Tables), strings.Join(s.Tables, ", "))
	}
	store, err := dynamodb.New(s.AWS("dynamodb"), dynamodb.Options{
		Keys:    map[string][]string{d.Table: {"pk", "sk"}},
		Metrics: s.Metrics,
	})
	if err != nil {
		return nil, err
	}
	d.Store = store
	client, err := Cluster(s.Env, s.AWS("opensearch"))
	if err != nil {
		return nil, err
	}
	sink, err := kit.Documents(s, client)
	if err != nil {
		return nil, err
	}
	d.Write = sink.Write
	d.Metrics = s.Metrics
	d.Dropped = func(table, field string) {
		s.Logger.Warn("a document's own field has a reserved name: it is not in the copy", "table", table, "field", field)
	}
	s.Check("table "+d.Table, func(ctx context.Context) error { return store.Check(ctx, d.Table) })
	s.Check("opensearch", (Indices{Call: client.Call, Prefix: d.IndexPrefix}).Check, "document")
	alerts, err := kit.StandardQueue(s, "MEADOWLARK_ALERTS", "for alerts about dangling references", "dangling", "look again")
	if err != nil {
		return nil, err
	}
	checks, err := kit.StandardQueue(s, "MEADOWLARK_CHECKS", "for references that are checked again a minute later", "reference", "look again")
	if err != nil {
		return nil, err
	}
	d.Alert, d.Check = alerts.Send, checks.Send
	return NewRouter(d)
}

// Cluster connects the cluster of MEADOWLARK_OPENSEARCH. With
// MEADOWLARK_OPENSEARCH_SIGN requests are signed by cfg.
func Cluster(env func(string) string, cfg aws.Config) (*opensearch.Client, error) {
	o := opensearch.Connection{
		URLs:     kit.URLs(env, "MEADOWLARK_OPENSEARCH"),
		Username: env("MEADOWLARK_OPENSEARCH_USER"), Password: env("MEADOWLARK_OPENSEARCH_PASSWORD"),
		CAFile: env("MEADOWLARK_OPENSEARCH_CA"), Service: env("MEADOWLARK_OPENSEARCH_SIGN"),
	}
	if o.Service != "" {
		o.AWS = &cfg
	}
	client, err := opensearch.Connect(o)
	if err != nil {
		return nil, fmt.Errorf("MEADOWLARK_OPENSEARCH, _USER, _PASSWORD, _CA, _SIGN: %w", err)
	}
	return client, nil
}
