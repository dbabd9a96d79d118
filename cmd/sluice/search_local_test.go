//go:build integration

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// A table whose index is empty is audited and repaired, gets another mapping,
// and is audited again, all by the command.
func TestAuditAndReindex(t *testing.T) {
	cfg, url := localtest.DynamoDB(t), localtest.OpenSearchURL(t)
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
	} {
		t.Setenv(name, value)
	}
	name := localtest.Name("cli")
	db := dynamodb.NewFromConfig(cfg)
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	cluster := client.Indices()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		cluster.Delete(ctx, name+"-000001")
		cluster.Delete(ctx, name+"-000002")
	})
	for i := range 20 {
		item := map[string]types.AttributeValue{
			"id":  &types.AttributeValueMemberS{Value: fmt.Sprint("p", i)},
			"rev": &types.AttributeValueMemberN{Value: fmt.Sprint(i + 1)},
		}
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "indices", name+".json")
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"settings":{"number_of_replicas":0},"mappings":{"properties":{"id":{"type":"text"}}}}`)
	if err := cluster.Apply(t.Context(), os.DirFS(folder), opensearch.IndexOptions{}); err != nil {
		t.Fatal(err)
	}

	env := func(name string) string {
		return map[string]string{"SLUICE_ENDPOINT_DYNAMODB": *cfg.BaseEndpoint, "SLUICE_OPENSEARCH": url}[name]
	}
	sluice := func(want int, says string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), append(args, "--index", name), env, &stdout, &stderr)
		if code != want || !strings.Contains(stdout.String()+stderr.String(), says) {
			t.Fatalf("%v: exit code %d, want %d and %q\n%s%s", args, code, want, says, &stdout, &stderr)
		}
	}
	projection := []string{"--table", name, "--id", "{id}", "--version-attribute", "rev"}
	audit := append([]string{"audit", "--settle", "10ms"}, projection...)
	quick := []string{"--ttl", "10ms", "--longest", "10ms"}
	reindex := func(step string, more ...string) []string {
		return append(append([]string{"reindex", step}, quick...), more...)
	}

	nowhere := []string{"--table", name + "-gone", "--id", "{id}", "--version-attribute", "rev"}
	sluice(1, `"clean":false,"error":"audit: reading the table: `, append([]string{"audit", "--json"}, nowhere...)...)
	sluice(3, "20 missing", audit...)
	sluice(3, "20 repaired", append(audit, "--repair")...)
	sluice(0, "0 missing", audit...)
	if err := client.Call(t.Context(), "PUT", "/"+name+"/_doc/ghost?version=7&version_type=external", []byte(`{"id":"ghost"}`), nil); err != nil {
		t.Fatal(err)
	}
	sluice(3, `{"drift":"ghost","index":"`+name+`","id":"ghost","have":7,"repaired":true}`, append(audit, "--repair", "--json")...)
	sluice(0, "0 ghosts", audit...)

	sluice(0, ": idle, leads to "+name+"-000001", reindex("status")...)
	write(`{"settings":{"number_of_replicas":0},"mappings":{"properties":{"id":{"type":"keyword"}}}}`)
	sluice(1, "-gone\"", append(reindex("start", "--indices", folder), nowhere...)...)
	sluice(0, ": idle, leads to "+name+"-000001", reindex("abandon")...) // nothing was changed
	start := append(reindex("start", "--indices", folder), projection...)
	sluice(0, "-000001 has 20 documents, "+name+"-000002 20", start...)
	sluice(0, `"equal": true,`, append(start, "--json")...)
	sluice(0, ": filled, leads to "+name+"-000001, the other index is "+name+"-000002", reindex("status")...)
	sluice(0, `"stage": "swapped"`, reindex("swap", "--json")...)
	sluice(0, "lead to "+name+"-000001", reindex("rollback")...)
	sluice(1, "is filled, want swapped", reindex("finish")...)
	sluice(0, "", reindex("swap", "--force")...)
	sluice(0, ": idle, leads to "+name+"-000002", reindex("finish", "--delete")...)
	sluice(0, ": idle, leads to "+name+"-000002", reindex("status")...)
	sluice(0, "20 documents", audit...)
	if err := cluster.Apply(t.Context(), os.DirFS(folder), opensearch.IndexOptions{}); err != nil {
		t.Error(err)
	}
}
