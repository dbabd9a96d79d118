package opensearch

import (
	"net/http"
	"strings"
)

// OpenSearch answers 400 for whatever is an IllegalArgumentException inside, also
// where the document is not at fault: such writes succeed when an index, a
// pipeline or a model is mended. To park each would be wrong.
//
// The texts are those of OpenSearch 1 to 3 and of its plugin ml-commons, whose
// models ingest pipelines call. They are looked for at the beginning of a reason
// where they stand there: the rest of a reason may quote the document.

// notNow are the reasons of such refusals, by their types.
var notNow = map[string][]func(reason string) bool{
	"index_closed_exception":    {any400},
	"index_not_found_exception": {any400},
	"illegal_argument_exception": {
		begins("no write index"), contains("Document ID is not supported"), begins("pipeline with id"), contains("data streams"),
		begins("Rejecting mapping update to"), // the index has documents of another type, of old versions

		// A model that is not deployed, or not yet on this node.
		begins("Model not ready"), begins("model not deployed"), begins("Auto deployment disabled for this model"),
		// No node runs models.
		begins("no eligible node"), begins("No eligible node"),
	},
	"status_exception": {
		begins("Local Model is currently disabled"), begins("Remote Inference is currently disabled"),
	},
	"validation_exception": {func(reason string) bool { // more shards than the cluster may have
		return strings.Contains(reason, "maximum") && strings.Contains(reason, "shards")
	}},
}

func any400(string) bool { return true }

func begins(text string) func(string) bool {
	return func(reason string) bool { return strings.HasPrefix(reason, text) }
}

func contains(text string) func(string) bool {
	return func(reason string) bool { return strings.Contains(reason, text) }
}

// ofCluster reports refusals with status 400 that are no fault of the document.
func ofCluster(status int, typ, reason string) bool {
	if status != http.StatusBadRequest {
		return false
	}
	for _, is := range notNow[typ] {
		if is(reason) {
			return true
		}
	}
	return false
}

// ofThrottledModel reports whether the service behind a model is throttled. For
// that SageMaker has status 400 and no message. ml-commons passes both on, since
// 2.15 under a type of its own where a header says so.
func ofThrottledModel(typ, reason string) bool {
	if typ == "remote_connector_throttling_exception" {
		return true
	}
	body, remote := strings.CutPrefix(reason, "Error from remote service: ")
	return typ == "status_exception" && remote &&
		(strings.ReplaceAll(body, " ", "") == `{"message":null}` || strings.Contains(body, "ThrottlingException"))
}
