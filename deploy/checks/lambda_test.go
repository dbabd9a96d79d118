package checks

import (
	"slices"
	"testing"
)

// F063: without partial answers what failed is lost, and nothing tells.
func TestSAMTemplateLosesNothing(t *testing.T) {
	resources := yamlFile(t, deploy, "lambda/sam/template.yaml").at("Resources")
	mappings := 0
	for name := range resources.v.(map[string]any) {
		r := resources.at(name)
		if r.at("Type").text() != "AWS::Lambda::EventSourceMapping" {
			continue
		}
		mappings++
		r.at("Properties", "FunctionResponseTypes").is([]any{"ReportBatchItemFailures"})
	}
	if mappings != 2 {
		t.Errorf("%d event source mappings, want those of stream and queue", mappings)
	}

	function := resources.at("Function", "Properties")
	function.at("Runtime").is("provided.al2023")
	function.at("Architectures").is([]any{"arm64"})
	function.at("Handler").is("bootstrap")
	function.at("Environment", "Variables", "SLUICE_CONFIG").is("sluice.yaml")

	stream := resources.at("Stream", "Properties")
	stream.at("StartingPosition").is("TRIM_HORIZON")
	stream.at("BisectBatchOnFunctionError").is(true)
	stream.at("DestinationConfig", "OnFailure", "Destination").is("GivenUp.Arn")
	giveUpInTime(t, stream.at("MaximumRetryAttempts").num(), stream.at("MaximumRecordAgeInSeconds").num())

	queue := resources.at("Messages", "Properties")
	if visible, timeout := queue.at("VisibilityTimeout").num(), function.at("Timeout").num(); visible < 6*timeout {
		t.Errorf("the queue's visibility timeout is %vs, want 6 times the function's %vs", visible, timeout)
	}
	if n := queue.at("RedrivePolicy", "maxReceiveCount").num(); n < 5 {
		t.Errorf("a message is given up after %v receives, want 5 at least", n)
	}
}

func TestTerraformOfLambdaLosesNothing(t *testing.T) {
	m := terraform(t, deploy, "lambda/terraform")
	mappings := m.resources("aws_lambda_event_source_mapping")
	if len(mappings) != 2 {
		t.Errorf("%d event source mappings, want those of stream and queue", len(mappings))
	}
	for _, r := range mappings {
		if got := r.list("function_response_types"); !slices.Equal(got, []string{"ReportBatchItemFailures"}) {
			t.Errorf("%s: function_response_types is %q", r.name, got)
		}
	}

	function := m.resource("aws_lambda_function", "sluice")
	function.is("runtime", "provided.al2023")
	function.is("handler", "bootstrap")

	stream := m.resource("aws_lambda_event_source_mapping", "stream")
	stream.is("starting_position", "TRIM_HORIZON")
	stream.is("bisect_batch_on_function_error", "true")
	stream.block("destination_config").block("on_failure").has("destination_arn")
	giveUpInTime(t, stream.num("maximum_retry_attempts"), stream.num("maximum_record_age_in_seconds"))

	queue := m.resource("aws_sqs_queue", "messages")
	if visible, timeout := queue.num("visibility_timeout_seconds"), function.num("timeout"); visible < 6*timeout {
		t.Errorf("the queue's visibility timeout is %vs, want 6 times the function's %vs", visible, timeout)
	}
	queue.has("redrive_policy")
}

func giveUpInTime(t *testing.T, attempts, age float64) {
	t.Helper()
	if attempts < 1 {
		t.Errorf("%v attempts: a bad record would hold up its shard for a day, or be given up at once", attempts)
	}
	if age <= 0 || age > 23*3600 {
		t.Errorf("records are given up when they are %vs old, want some hours before the stream forgets them", age)
	}
}
