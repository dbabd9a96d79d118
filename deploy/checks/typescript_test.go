//go:build integration

package checks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// npmPackages has node_modules, as tools/deploy/npm pins it. No script of a package
// runs.
func npmPackages(t *testing.T) string {
	t.Helper()
	inputs := []string{"package.json", "package-lock.json", ".npmrc"}
	var text strings.Builder
	for _, name := range inputs {
		text.WriteString(read(t, root, "tools/deploy/npm", name))
	}
	return installed(t, "npm", text.String(), func(home string) {
		npm, err := exec.LookPath("npm")
		if err != nil {
			t.Fatal("the checks of CDK and SST need Node.js 20 or newer with npm")
		}
		for _, name := range inputs {
			write(t, read(t, root, "tools/deploy/npm", name), home, name)
		}
		must(t, npm, "ci", "--prefix", home, "--prefer-offline")
	})
}

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // of a test
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // some are programs
		t.Fatal(err)
	}
}

// in runs a program in a folder, with more environment.
func in(t *testing.T, dir string, env []string, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
}

// tsc checks files of dir against the types of all that they import, and writes
// JavaScript to dir/out.
func tsc(t *testing.T, dir string, args ...string) {
	t.Helper()
	in(t, dir, nil, "node", append([]string{
		filepath.Join(npmPackages(t), "node_modules/typescript/bin/tsc"),
		"--strict", "--target", "es2022", "--skipLibCheck", "--types", "node", "--outDir", "out",
	}, args...)...)
}

// ownFolder is an empty folder of this clone, from which node sees the packages.
func ownFolder(t *testing.T, name string) string {
	t.Helper()
	home, err := filepath.Abs(filepath.Join(root, cache, name))
	if err == nil {
		err = errors.Join(os.RemoveAll(home), os.MkdirAll(home, 0o700), os.Symlink(filepath.Join(npmPackages(t), "node_modules"), filepath.Join(home, "node_modules")))
	}
	if err != nil {
		t.Fatal(err)
	}
	return home
}

var synthesized string // by cdkTemplate, in this run; no test of the package is parallel

// cdkTemplate is the file that the CDK makes of deploy/lambda/cdk.
func cdkTemplate(t *testing.T) string {
	t.Helper()
	if synthesized != "" {
		return synthesized
	}
	home := ownFolder(t, "cdk")
	write(t, read(t, deploy, "lambda/cdk/app.ts"), home, "cdk/app.ts")
	write(t, "", home, "build/bootstrap")
	tsc(t, home, "--module", "nodenext", "cdk/app.ts")
	// cfn-lint validates the template in a third of the time.
	in(t, home, []string{"CDK_OUTDIR=synth", "CDK_VALIDATION=false"}, "node", "out/app.js")
	synthesized = filepath.Join(home, "synth/Sluice.template.json")
	return synthesized
}

func TestCDKMakesWhatTheSAMTemplateHas(t *testing.T) {
	resources := jsonFile(t, cdkTemplate(t)).at("Resources")
	of := map[string][]doc{}
	names := map[string]string{} // of resources, without the hash that the CDK adds
	for name := range resources.v.(map[string]any) {
		kind := resources.at(name, "Type").text()
		of[kind] = append(of[kind], resources.at(name, "Properties"))
		names[name] = strings.TrimRight(name, "0123456789ABCDEF")
	}
	sam := samSettings(t)
	if n := len(of["AWS::Lambda::EventSourceMapping"]); n != 1 {
		t.Fatalf("%d event source mappings, want 1", n)
	}
	sam.mapping(t, of["AWS::Lambda::EventSourceMapping"][0])
	function := of["AWS::Lambda::Function"][0]
	for _, key := range []string{"Handler", "Runtime", "Architectures", "MemorySize", "Timeout"} {
		function.at(key).is(sam.function.at(key).v)
	}
	function.at("Environment", "Variables", "SLUICE_CONFIG").is(sam.function.at("Environment", "Variables", "SLUICE_CONFIG").v)
	function.at("LoggingConfig", "LogFormat").is(sam.function.at("LoggingConfig", "LogFormat").v)

	var have []string
	for _, s := range of["AWS::IAM::Policy"][0].at("PolicyDocument", "Statement").list() {
		resource, ok := s.at("Resource").v.(string)
		if !ok {
			at := s.at("Resource", "Fn::GetAtt")
			resource = names[at.at(0).text()] + "." + at.at(1).text()
		}
		have = append(have, statement(s.at("Action"), resource))
	}
	sam.allows(t, append(sam.read, "logs:CreateLogStream logs:PutLogEvents on Log.Arn"), have)
	if role := of["AWS::IAM::Role"][0]; role.has("ManagedPolicyArns") {
		t.Error("the role has a managed policy, beside the statements")
	}
}

// sstProject has deploy/lambda/sst with the types that SST's own command makes for it.
// That asks npm for the provider once.
func sstProject(t *testing.T) string {
	t.Helper()
	packages := npmPackages(t)
	config := read(t, deploy, "lambda/sst/sst.config.ts")
	return installed(t, filepath.Base(packages)+"/sst", config, func(home string) {
		commands, err := filepath.Glob(filepath.Join(packages, "node_modules/sst-*/bin/sst"))
		if err != nil || len(commands) != 1 {
			t.Fatalf("npm has no command of SST for this machine: %v %v", commands, err)
		}
		write(t, config, home, "sst.config.ts")
		// The command downloads a Pulumi and a Bun, unless it finds a Pulumi of its
		// version. It uses neither to make types. npm ci has installed what Bun would.
		pulumi := jsonFile(t, packages, "node_modules/@pulumi/pulumi/package.json").at("version").text()
		user := t.TempDir()
		for _, settings := range []string{".config", "Library/Application Support"} {
			write(t, "#!/bin/sh\necho v"+pulumi+"\n", user, settings, "sst/bin/pulumi")
		}
		in(t, home, []string{"HOME=" + user, "XDG_CONFIG_HOME=", "DO_NOT_TRACK=1", "SST_TELEMETRY_DISABLED=1", "SST_BUN_PATH=true"}, commands[0], "install", "--stage", "checks")
	})
}

// Types of SST that were any would let these lines pass.
const wrongSST = `/// <reference path="./.sst/platform/config.d.ts" />
// @ts-expect-error
new sst.aws.Dynamo("T", { fields: { pk: "string" }, stream: "new" });
declare const table: sst.aws.Dynamo;
// @ts-expect-error
table.subscribe("S", { handler: "bootstrap", runtime: "provided.al2099" });
// @ts-expect-error
table.subscribe("S", "h", { transform: { eventSourceMapping: { functionResponseTypes: "ReportBatchItemFailures" } } });
// @ts-expect-error
new aws.sqs.Queue("Q", { retention: 1 });
`

// Values that stand in for SST's tell what the file passes to them.
const recordSST = `
const queue = (name) => ({ arn: name + ".Arn", url: name });
globalThis.aws = { sqs: { Queue: class { constructor(name) { return queue(name); } } } };
const seen = {};
globalThis.sst = { aws: { Dynamo: class {
  constructor(name, args) { seen.table = args; }
  subscribe(name, fn, args) { Object.assign(seen, { function: fn, args }); return { nodes: { function: {} } }; }
} } };
globalThis.$config = (config) => config;
const { default: config } = await import("./out/sst.config.js");
await config.run();
console.log(JSON.stringify(seen));
`

func TestSSTMakesWhatTheSAMTemplateHas(t *testing.T) {
	home, project := ownFolder(t, "sst"), sstProject(t)
	if err := os.Symlink(filepath.Join(project, ".sst"), filepath.Join(home, ".sst")); err != nil {
		t.Fatal(err)
	}
	write(t, read(t, project, "sst.config.ts"), home, "sst.config.ts")
	platform := jsonFile(t, home, ".sst/platform/package.json")
	pinned := jsonFile(t, root, "tools/deploy/npm/package.json").at("dependencies")
	for name, version := range pinned.v.(map[string]any) {
		if !strings.HasPrefix(name, "@pulumi") && name != "esbuild" {
			continue
		}
		if want := strings.TrimPrefix(platform.at("dependencies", name).text(), "v"); version != want {
			t.Errorf("tools/deploy/npm has %s %v, SST %s", name, version, want)
		}
	}
	write(t, wrongSST, home, "wrong.ts")
	tsc(t, home, "--module", "esnext", "--moduleResolution", "bundler", "sst.config.ts", "wrong.ts")

	write(t, `{"type": "module"}`, home, "package.json")
	write(t, recordSST, home, "record.mjs")
	cmd := exec.CommandContext(t.Context(), "node", "record.mjs")
	cmd.Dir = home
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := doc{t: t, name: "sst.config.ts"}
	if err := json.Unmarshal(out, &seen.v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	seen.at("table", "stream").is("new-and-old-images")

	sam := samSettings(t)
	// The provider has Lambda's names, but for the first letter and this one.
	given := map[string]any{}
	for key, value := range seen.at("args", "transform", "eventSourceMapping").v.(map[string]any) {
		given[strings.ToUpper(key[:1])+key[1:]] = value
	}
	mapping := doc{t: t, name: "eventSourceMapping", v: given}
	mapping.at("DestinationConfig", "onFailure", "destinationArn").is("GivenUp.Arn")
	delete(given, "DestinationConfig")
	sam.mapping(t, mapping)

	function := seen.at("function")
	for key, samKey := range map[string]string{"handler": "Handler", "runtime": "Runtime"} {
		function.at(key).is(sam.function.at(samKey).v)
	}
	function.at("architecture").is(sam.function.at("Architectures", 0).v)
	function.at("memory").is(fmt.Sprintf("%v MB", sam.function.at("MemorySize").v))
	function.at("timeout").is(fmt.Sprintf("%v seconds", sam.function.at("Timeout").v))
	function.at("logging", "format").is("json")
	function.at("environment", "SLUICE_CONFIG").is(sam.function.at("Environment", "Variables", "SLUICE_CONFIG").v)

	var have []string
	for _, s := range function.at("permissions").list() {
		have = append(have, statement(s.at("actions"), s.at("resources", 0).text()))
	}
	sam.allows(t, nil, have) // SST adds the statements for reading the stream
}

// settings are those of the SAM template, with the defaults of its parameters.
type settings struct {
	function, stream doc
	read, send       []string // statements
}

func samSettings(t *testing.T) settings {
	t.Helper()
	template := yamlFile(t, deploy, "lambda/sam/template.yaml")
	s := settings{function: template.at("Resources", "Function", "Properties"), stream: template.at("Resources", "Stream", "Properties")}
	properties := s.stream.v.(map[string]any)
	for key, value := range properties {
		if name, ok := value.(string); ok && template.at("Parameters").has(name) && name != "StreamArn" {
			properties[key] = template.at("Parameters", name, "Default").v
		}
	}
	resources := map[string]string{"StreamArn": "Orders.StreamArn", "TargetQueueArn": "Jobs.Arn"}
	var walk func(d doc)
	walk = func(d doc) {
		switch v := d.v.(type) {
		case []any:
			for i := range v {
				walk(d.at(i))
			}
		case map[string]any:
			if !d.has("Sid") {
				for key := range v {
					walk(d.at(key))
				}
				return
			}
			resource := d.at("Resource").text()
			text := statement(d.at("Action"), cmp.Or(resources[resource], resource))
			switch sid := d.at("Sid").text(); sid {
			case "ReadTheStream", "ListStreamsHasNoResource":
				s.read = append(s.read, text)
			case "TellWhatWasGivenUp", "SendWhatRoutesSend":
				s.send = append(s.send, text)
			}
		}
	}
	walk(s.function.at("Policies"))
	if len(s.read) != 2 || len(s.send) != 2 {
		t.Fatalf("the SAM template has the statements %q and %q", s.read, s.send)
	}
	return s
}

// mapping compares all settings but names of resources.
func (s settings) mapping(t *testing.T, have doc) {
	t.Helper()
	n := 0
	for key, want := range s.stream.v.(map[string]any) {
		if slices.Contains([]string{"FunctionName", "EventSourceArn", "DestinationConfig"}, key) {
			continue
		}
		n++
		have.at(key).is(want)
	}
	for key := range have.v.(map[string]any) {
		if !s.stream.has(key) {
			t.Errorf("%s has %s, the SAM template has not", have.name, key)
		}
	}
	if n < 8 {
		t.Errorf("%d settings compared", n)
	}
}

// allows compares statements with those of the SAM template and more.
func (s settings) allows(t *testing.T, more, have []string) {
	t.Helper()
	want := append(slices.Clone(s.send), more...)
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("allows %q, want %q", have, want)
	}
}

// statement is a statement of a policy in a line.
func statement(action doc, resource string) string {
	var actions []string
	if text, ok := action.v.(string); ok {
		actions = []string{text}
	} else {
		for _, a := range action.list() {
			actions = append(actions, a.text())
		}
	}
	slices.Sort(actions)
	return strings.Join(actions, " ") + " on " + resource
}
