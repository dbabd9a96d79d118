package opensearch

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// A document with fields or values named like errors is a permanent failure, not an
// outage or a fault of its index.
func TestNamesOfFieldsAreNoErrors(t *testing.T) {
	names := []string{
		"index_closed_exception", "es_rejected_execution", "cluster_block_exception", "circuit_breaking_exception",
		"data streams", "only write ops with an op_type of create are allowed in data streams",
		"Document ID is not supported in create/index operation request", "pipeline with id [p] does not exist", "no write index is defined for alias [a]",
		"maximum shards", "Model not ready", "no eligible node", "contains unrecognized parameter", "explicit index in bulk is not allowed",
		"ThrottlingException", `{\"__type\":\"ThrottlingException\"}`,
	}
	for _, said := range []string{
		`"illegal_argument_exception","reason":"mapper [NAME] cannot be changed from type [long] to [text]"`,
		`"illegal_argument_exception","reason":"field [NAME] not present as part of path [NAME]"`,
		`"illegal_argument_exception","reason":"For input string: \"NAME\""`,
		`"validation_exception","reason":"Validation Failed: 1: field [NAME] is too long;"`,
		`"mapper_parsing_exception","reason":"failed to parse field [NAME] of type [long] in document with id 'x'","caused_by":{"type":"NAME","reason":"NAME"}`,
		`"strict_dynamic_mapping_exception","reason":"mapping set to strict, dynamic introduction of [NAME] within [_doc] is not allowed"`,
		`"status_exception","reason":"Error from remote service: {\"message\":\"the text NAME is too long\"}"`,
		`"status_exception","reason":"Error from remote service: the text NAME is too long"`,
	} {
		for _, name := range names {
			text := `{"type":` + strings.ReplaceAll(said, "NAME", name) + `}`
			if !json.Valid([]byte(text)) {
				continue // a name with quotes, within quotes
			}
			for _, whole := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					c := cluster{request: func(int, []string) *reply {
						if whole {
							return &reply{status: 400, body: `{"error":` + text + `,"status":400}`}
						}
						return &reply{status: 200, body: `{"took":3,"errors":true,"items":[{"index":{"_index":"i","_id":"x","status":400,"error":` + text + `}}]}`}
					}}
					if err := c.sink(t, Options{Timeout: time.Minute}).Write(t.Context(), put("i", "x", "{}")); !sluice.IsPermanent(err) {
						t.Errorf("of the whole request %t: %s: %v", whole, text, err)
					}
				})
			}
		}
	}
}

// Errors of status 400 in the cluster's words, and whether the document is at fault.
func TestBadRequestsThatMeanNotNow(t *testing.T) {
	const parked, waits, overloaded = "parked", "waits", "overloaded"
	for _, tt := range []struct {
		name string
		err  string // JSON
		want string
	}{
		// ml-commons, MLPredictTaskRunner, RemoteModel, DLModel
		{"model not deployed", `{"type":"illegal_argument_exception","reason":"Model not ready yet. Please deploy the model first."}`, waits},
		{"remote model not deployed", `{"type":"illegal_argument_exception","reason":"Model not ready yet. Please run this first: POST /_plugins/_ml/models/2PfqpI4B_1v71XsqjbwX/_deploy"}`, waits},
		{"model not on this node", `{"type":"illegal_argument_exception","reason":"Model not ready to be used: 2PfqpI4B_1v71XsqjbwX"}`, waits},
		{"model being loaded", `{"type":"illegal_argument_exception","reason":"Model not ready: 2PfqpI4B_1v71XsqjbwX"}`, waits},
		{"local model not deployed", `{"type":"illegal_argument_exception","reason":"model not deployed"}`, waits},
		{"model without auto deployment", `{"type":"illegal_argument_exception","reason":"Auto deployment disabled for this model, please deploy model first Model ID: 2PfqpI4B_1v71XsqjbwX"}`, waits},
		// MLTaskDispatcher
		{"no node for models", `{"type":"illegal_argument_exception","reason":"no eligible node to run predict request"}`, waits},
		{"no ML node", `{"type":"illegal_argument_exception","reason":"No eligible node found to execute this request. It's best practice to provision ML nodes to serve your models. You can disable this setting to serve the model on your data node for development purposes by disabling the \"plugins.ml_commons.only_run_on_ml_node\" configuration using the _cluster/settings api"}`, waits},
		// MLExceptionUtils
		{"local models disabled", `{"type":"status_exception","reason":"Local Model is currently disabled. To enable it, update the setting \"plugins.ml_commons.local_model.enabled\" to true."}`, waits},
		{"remote models disabled", `{"type":"status_exception","reason":"Remote Inference is currently disabled. To enable it, update the setting \"plugins.ml_commons.remote_inference_enabled\" to true."}`, waits},
		// https://github.com/opensearch-project/ml-commons/issues/2429, MLSdkAsyncHttpResponseHandler
		{"SageMaker throttled", `{"type":"status_exception","reason":"Error from remote service: {\"message\":null}"}`, overloaded},
		{"SageMaker throttled, since 2.15", `{"type":"remote_connector_throttling_exception","reason":"Error from remote service: The request was denied due to remote server throttling. To change the retry policy and behavior, please update the connector client_config."}`, overloaded},
		{"the service names it", `{"type":"status_exception","reason":"Error from remote service: {\"__type\":\"ThrottlingException\",\"message\":\"Rate exceeded\"}"}`, overloaded},

		// OpenSearch
		{"closed index", `{"type":"index_closed_exception","reason":"closed","index":"orders","index_uuid":"aAsFqTI0Tc2W0LCWgPNrOA"}`, waits},
		{"alias of many", `{"type":"illegal_argument_exception","reason":"no write index is defined for alias [i]. The write index may be explicitly disabled using is_write_index=false or the alias points to multiple indices without one being designated as a write index"}`, waits},
		{"no such pipeline", `{"type":"illegal_argument_exception","reason":"pipeline with id [p] does not exist"}`, waits},
		{"too many shards", `{"type":"validation_exception","reason":"Validation Failed: 1: this action would add [2] total shards, but this cluster currently has [1000]/[1000] maximum shards open;"}`, waits},
		{"a type of old versions", `{"type":"illegal_argument_exception","reason":"Rejecting mapping update to [orders] as the final mapping would have more than 1 type: [_doc, order]"}`, waits},

		// The document is at fault, or the mapping does not fit it.
		{"mapping", `{"type":"mapper_parsing_exception","reason":"failed to parse field [n] of type [long] in document with id 'x'. Preview of field's value: 'model not deployed'","caused_by":{"type":"illegal_argument_exception","reason":"For input string: \"model not deployed\""}}`, parked},
		{"a value that says so", `{"type":"illegal_argument_exception","reason":"For input string: \"Model not ready; pipeline with id\""}`, parked},
		{"strict mapping", `{"type":"strict_dynamic_mapping_exception","reason":"mapping set to strict, dynamic introduction of [n] within [_doc] is not allowed"}`, parked},
		{"too many fields", `{"type":"illegal_argument_exception","reason":"Limit of total fields [1000] has been exceeded"}`, parked},
		{"another type", `{"type":"illegal_argument_exception","reason":"mapper [n] cannot be changed from type [long] to [text]"}`, parked},
		{"immense term", `{"type":"illegal_argument_exception","reason":"Document contains at least one immense term in field=\"k\" (whose UTF8 encoding is longer than the max length 32766), all of which were skipped."}`, parked},
		{"no field for the pipeline", `{"type":"illegal_argument_exception","reason":"field [title] not present as part of path [title]"}`, parked},
		{"the model refuses the text", `{"type":"status_exception","reason":"Error from remote service: {\"message\":\"400 Bad Request: Too many input tokens\"}"}`, parked},
		{"schema of a model", `{"type":"status_exception","reason":"Error validating input schema, if you think this is expected, please update your 'input' field in the 'interface' field for this model: x"}`, parked},
		{"index name", `{"type":"invalid_index_name_exception","reason":"Invalid index name [A], must be lowercase"}`, parked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cluster{request: func(int, []string) *reply {
					return &reply{status: 200, body: `{"took":3,"errors":true,"items":[{"index":{"_index":"i","_id":"x","status":400,"error":` + tt.err + `}}]}`}
				}}
				err := c.sink(t, Options{Timeout: time.Minute}).Write(t.Context(), put("i", "x", "{}"))
				got := waits
				switch {
				case err == nil:
					got = "done"
				case sluice.IsPermanent(err):
					got = parked
				case outcomes.IsOverloaded(err):
					got = overloaded
				}
				if got != tt.want {
					t.Errorf("%s, want %s: %v", got, tt.want, err)
				}
				if tt.want != overloaded && len(c.requests) != 1 {
					t.Errorf("%d requests", len(c.requests))
				}
			})
		})
	}
}

// An error that shows the template of an index says so, and where the name is: no
// log has it, being made of an item's values.
func TestErrorOfATemplate(t *testing.T) {
	op := document.Op{Action: document.Put, Index: "products-acme", IndexTemplate: "products-{tenant}", ID: "lamp-1"}
	missing := failure{said: said{404, "index_not_found_exception", "no such index [products-acme]"}}
	const want = `index of a document in "products-{tenant}": status 404: index_not_found_exception: no such index [products-{tenant}]`
	const note = "the index is named by this template; sluice explain and the details of a dead letter have its name"
	if got := missing.of(&op).Error(); got != want+": "+note {
		t.Error(got)
	}
	missing.err = io.ErrUnexpectedEOF
	if got := missing.of(&op); got.Error() != want+": unexpected EOF: "+note || !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Error(got)
	}
	op.IndexTemplate, missing.err = "", nil
	if got := missing.of(&op).Error(); strings.Contains(got, "template") {
		t.Error(got)
	}
}
