package checks

import (
	"maps"
	"slices"
	"testing"
)

// Without partial answers a failed record is lost without a word.
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

// Nobody has to make a queue, or anything else, that the routes do not name.
func TestSAMTemplateAsksForTheStreamAlone(t *testing.T) {
	parameters := yamlFile(t, deploy, "lambda/sam/template.yaml").at("Parameters")
	for name := range parameters.v.(map[string]any) {
		if parameters.at(name).has("Default") == (name == "StreamArn") {
			t.Errorf("%s: want a default of all parameters but StreamArn", name)
		}
	}
	for _, v := range terraform(t, deploy, "lambda/terraform").blocks {
		if v.Type == "variable" && (v.Body.Attributes["default"] != nil) == (v.Labels[0] == "stream_arn") {
			t.Errorf("%s: want a default of all variables but stream_arn", v.name)
		}
	}
}

// Another test compares the policies of deploy/iam with the calls of the code. The
// templates allow exactly the same.
func TestLambdaTemplatesAllowWhatThePoliciesDo(t *testing.T) {
	want := map[string]bool{}
	for _, file := range []string{"lambda.json", "lambda-queue.json", "send.json"} {
		for _, s := range jsonFile(t, deploy, "iam", file).at("Statement").list() {
			for _, a := range s.at("Action").list() {
				want[a.text()] = true
			}
		}
	}

	m, tf := terraform(t, deploy, "lambda/terraform"), map[string]bool{}
	for _, b := range m.blocks {
		if b.Type != "data" || b.Labels[1] != "sluice" {
			continue
		}
		for _, s := range b.Body.Blocks {
			if s.Type == "dynamic" {
				s = s.Body.Blocks[0]
			}
			for _, a := range (block{t, b.name, s, b.eval}).list("actions") {
				tf[a] = true
			}
		}
	}
	if !maps.Equal(tf, want) {
		t.Errorf("lambda/terraform allows %v, deploy/iam %v", slices.Sorted(maps.Keys(tf)), slices.Sorted(maps.Keys(want)))
	}

	sam := map[string]bool{}
	for _, v := range yamlFile(t, deploy, "lambda/sam/template.yaml").at("Resources", "Function", "Properties", "Policies").values("Action") {
		if l, ok := v.v.([]any); ok {
			for _, a := range l {
				sam[a.(string)] = true
			}
		} else {
			sam[v.text()] = true
		}
	}
	// SAM gives every function AWSLambdaBasicExecutionRole, which has these.
	sam["logs:CreateLogStream"], sam["logs:PutLogEvents"] = true, true
	if !maps.Equal(sam, want) {
		t.Errorf("lambda/sam allows %v, deploy/iam %v", slices.Sorted(maps.Keys(sam)), slices.Sorted(maps.Keys(want)))
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
