//go:build integration

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/localtest"
)

// request makes one request of OpenSearch and returns the answer.
func request(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// A table becomes an index: all of its items, unless a newer document is there.
func TestBackfillIntoAnIndex(t *testing.T) {
	endpoint, search := os.Getenv("SLUICE_TEST_DYNAMODB"), localtest.OpenSearchURL(t)
	if endpoint == "" {
		t.Fatal("SLUICE_TEST_DYNAMODB is not set: run make test")
	}
	for name, value := range map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"} {
		t.Setenv(name, value)
	}
	table := localtest.Name("cmd")
	index := strings.ToLower(table)
	db := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")})
	if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Error(err)
		}
		request(t, "DELETE", search+"/"+index, "")
	})
	request(t, "PUT", search+"/"+index, `{"settings":{"number_of_replicas":0,"number_of_shards":1}}`)
	put := func(i int, rev string) {
		it := map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: fmt.Sprint("o", i)}, "n": &types.AttributeValueMemberN{Value: strconv.Itoa(i)},
			"rev": &types.AttributeValueMemberN{Value: rev}, "entityType": &types.AttributeValueMemberS{Value: "order"},
		}
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
			t.Fatal(err)
		}
	}
	const items = 120
	for i := range items {
		put(i, "5")
	}
	// Documents that a daemon wrote meanwhile, at a newer and at an older version.
	request(t, "PUT", search+"/"+index+"/_doc/o1?version=6&version_type=external", `{"n":-1}`)
	request(t, "PUT", search+"/"+index+"/_doc/o2?version=4&version_type=external", `{"n":-1}`)

	state := filepath.Join(t.TempDir(), "state.db")
	args := []string{"backfill", "--table", table, "--opensearch", search, "--index", index, "--id", "{pk}", "--version-attribute", "rev",
		"--state", state, "--endpoint-dynamodb", endpoint, "--segments", "3", "--json"}
	backfill := func(exit int, more ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := execute(t.Context(), append(args, more...), func(string) string { return "" }, &out, &errs); got != exit {
			t.Fatalf("exit code %d, want %d:\n%s", got, exit, errs.String())
		}
		return out.String(), errs.String()
	}
	if _, stderr := backfill(1); !strings.Contains(stderr, "the table has no stream") || !strings.Contains(stderr, "--without-stream") {
		t.Errorf("without a stream: %s", stderr)
	}
	stdout, _ := backfill(0, "--without-stream")
	if last := stdout[strings.LastIndex(strings.TrimSpace(stdout), "\n")+1:]; !strings.Contains(last, `"settled":120,`) || !strings.Contains(last, `"finished":true`) {
		t.Errorf("%s", stdout)
	}
	request(t, "POST", search+"/"+index+"/_refresh", "")
	if got := request(t, "GET", search+"/"+index+"/_count", ""); !strings.Contains(got, `"count":120`) {
		t.Errorf("%s", got)
	}
	for id, want := range map[string]string{
		"o1": `"_version":6,`, "o2": `"_version":5,`, "o7": `"pk":"o7"`,
	} {
		if got := request(t, "GET", search+"/"+index+"/_doc/"+id, ""); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}

	if stdout, stderr := backfill(0, "--without-stream"); strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, `"finished":true`) || !strings.Contains(stderr, "nothing was read") {
		t.Errorf("a second time: %s%s", stdout, stderr)
	}

	// An item without a version gets no document. The command reports it, and keeps it
	// as a dead letter.
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "bad"}, "entityType": &types.AttributeValueMemberS{Value: "order"},
	}}); err != nil {
		t.Fatal(err)
	}
	_, stderr := backfill(1, "--without-stream", "--again")
	for _, want := range []string{
		"1 item failed for good: see the dead letters in the state file " + state,
		"sluice dlq list --state " + state + " --application sluice --table " + table,
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("with an item that has no version, it does not say %q: %s", want, stderr)
		}
	}
	// The line names the route and the letter, which is there by that name.
	parked := regexp.MustCompile(`msg="record parked as a dead letter" route=projection table=\S+ event=\S+ .* deadLetter=(\S+)\n`).FindStringSubmatch(stderr)
	if parked == nil || strings.Contains(stderr, "shard=") || strings.Contains(stderr, "sequence=") {
		t.Fatalf("the line of what was parked: %s", stderr)
	}
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"dlq", "show", parked[1], "--state", state}, func(string) string { return "" }, &out, &errs); code != 0 || !strings.Contains(out.String(), "bad") {
		t.Errorf("%d: %s%s", code, out.String(), errs.String())
	}
	if _, stderr := backfill(1, "--without-stream"); !strings.Contains(stderr, "1 item failed for good") {
		t.Errorf("a time later, with the item still among the dead letters: %s", stderr)
	}
}

// An index that is not there is made by OpenSearch, with mappings it guesses.
func TestBackfillTellsOfAMissingIndex(t *testing.T) {
	endpoint, search := os.Getenv("SLUICE_TEST_DYNAMODB"), localtest.OpenSearchURL(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	index := localtest.Name("none")
	var out, errs bytes.Buffer
	execute(t.Context(), []string{"backfill", "--table", index, "--opensearch", search, "--index", index, "--id", "{pk}", "--version-attribute", "rev",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", endpoint, "--without-stream"}, func(string) string { return "" }, &out, &errs)
	if !strings.Contains(errs.String(), "the index does not exist") {
		t.Error(errs.String())
	}
}
