package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// directPkg has the tests that use the account as a user's daemon does: without
// the gateway, by the caller's own credentials and the addresses of the SDK.
const directPkg = "internal/cmd/awssuite"

// directEnv is for those tests: what the caller's environment says, under names
// that no other test reads.
func directEnv(environ []string, a *account, search string) []string {
	env := []string{"SLUICE_DIRECT_OPENSEARCH=" + search, "SLUICE_DIRECT_AWS_REGION=" + a.cfg.Region}
	if a.local {
		return append(env, "SLUICE_DIRECT_AWS_ACCESS_KEY_ID=local", "SLUICE_DIRECT_AWS_SECRET_ACCESS_KEY=local",
			"SLUICE_DIRECT_AWS_ENDPOINT_URL_DYNAMODB="+a.urls.dynamodb, "SLUICE_DIRECT_AWS_ENDPOINT_URL_DYNAMODB_STREAMS="+a.urls.streams,
			"SLUICE_DIRECT_AWS_ENDPOINT_URL_SQS="+a.urls.sqs)
	}
	for _, v := range environ {
		if strings.HasPrefix(v, "AWS_") {
			env = append(env, "SLUICE_DIRECT_"+v)
		}
	}
	return env
}

// noIndices refuses a domain in which somebody has indices. Those of plugins
// begin with a dot.
func (a *account) noIndices(ctx context.Context, url string) error {
	resp, err := a.send(ctx, "es", url, http.MethodGet, "/_cat/indices?format=json&h=index", http.Header{}, nil)
	if err != nil {
		return fmt.Errorf("OpenSearch: %w", err)
	}
	defer resp.Body.Close()
	var indices []struct{ Index string }
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("OpenSearch at %s answers with %s", url, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&indices); err != nil {
		return fmt.Errorf("OpenSearch at %s: %w", url, err)
	}
	indices = slices.DeleteFunc(indices, func(i struct{ Index string }) bool { return strings.HasPrefix(i.Index, ".") })
	if len(indices) > 0 {
		return fmt.Errorf("OpenSearch at %s has %d indices, such as %s: the suite wants a domain without any", url, len(indices), indices[0].Index)
	}
	return nil
}
