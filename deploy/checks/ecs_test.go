package checks

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Two daemons that read the same streams would handle every record twice, and a
// task that starts without its state would have no positions.
func TestECSRunsOneDaemonWithItsState(t *testing.T) {
	resources := yamlFile(t, deploy, "ecs/cloudformation.yaml").at("Resources")
	service := resources.at("Service", "Properties")
	service.at("LaunchType").is("EC2")
	service.at("DesiredCount").is(1)
	service.at("DeploymentConfiguration", "MinimumHealthyPercent").is(0)
	service.at("DeploymentConfiguration", "MaximumPercent").is(100)
	resources.at("Instances", "Properties", "MaxSize").is("1")
	resources.at("Instances", "UpdatePolicy", "AutoScalingRollingUpdate", "MinInstancesInService").is(0)
	resources.at("Volume", "DeletionPolicy").is("Retain")
	resources.at("Volume", "UpdateReplacePolicy").is("Retain")
	task := resources.at("Task", "Properties", "ContainerDefinitions", 0)
	task.at("ReadonlyRootFilesystem").is(true)
	task.at("User").is("65532:65532")
	task.at("LinuxParameters", "Capabilities", "Drop", 0).is("ALL")
	if pattern := regexp.MustCompile(yamlFile(t, deploy, "ecs/cloudformation.yaml").at("Parameters", "Image", "AllowedPattern").text()); pattern.MatchString("sluice:1") || !pattern.MatchString("r/sluice@sha256:"+strings.Repeat("0", 64)) {
		t.Error("an image without its digest is taken: a restart may run another")
	}
	if stop := task.at("StopTimeout").num(); stop < 25+10 {
		t.Errorf("SIGKILL comes after %vs, want more than the grace", stop)
	}

	m := terraform(t, deploy, "ecs/terraform")
	tf := m.resource("aws_ecs_service", "sluice")
	tf.is("launch_type", "EC2")
	tf.is("desired_count", "1")
	tf.is("deployment_minimum_healthy_percent", "0")
	tf.is("deployment_maximum_percent", "100")
	m.resource("aws_autoscaling_group", "sluice").is("max_size", "1")
	if main := read(t, deploy, "ecs/terraform/main.tf"); !strings.Contains(main, `capabilities = { drop = ["ALL"] }`) || !strings.Contains(read(t, deploy, "ecs/terraform/variables.tf"), "@sha256:") {
		t.Error("ecs/terraform keeps capabilities, or takes an image without its digest")
	}
	m.resource("aws_ebs_volume", "state").block("lifecycle").is("prevent_destroy", "true")
	// Version 6 of the provider has region in its place, and warns of name; 5 lacks
	// region. Both have the Region's name as the id.
	if strings.Contains(read(t, deploy, "ecs/terraform/main.tf"), "data.aws_region.current.name") {
		t.Error("ecs/terraform reads the name of aws_region, which is going away: want its id")
	}
}

// On Fargate no task has a state of its own: all share a table.
func TestFargateRunsAFleet(t *testing.T) {
	file := yamlFile(t, deploy, "ecs/fargate.yaml")
	one := yamlFile(t, deploy, "ecs/cloudformation.yaml")
	resources := file.at("Resources")
	service := resources.at("Service", "Properties")
	service.at("LaunchType").is("FARGATE")
	service.at("DeploymentConfiguration", "MinimumHealthyPercent").is(100)
	service.at("DeploymentConfiguration", "MaximumPercent").is(200)
	task := resources.at("Task", "Properties", "ContainerDefinitions", 0)
	same := one.at("Resources", "Task", "Properties", "ContainerDefinitions", 0)
	for _, part := range []string{"User", "ReadonlyRootFilesystem", "StopTimeout"} {
		task.at(part).is(same.at(part).v)
	}
	task.at("LinuxParameters", "Capabilities", "Drop", 0).is("ALL")
	file.at("Parameters", "Image", "AllowedPattern").is(one.at("Parameters", "Image", "AllowedPattern").text())
	text := read(t, deploy, "ecs/fargate.yaml")
	for _, want := range []string{`Value: !Sub "dynamodb:${StateTable}"`, "SLUICE_TOKEN", "table/${StateTable}"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	statement := yamlFile(t, deploy, "iam/state.json").at("Statement", 0, "Action")
	policy := resources.at("TaskRole", "Properties", "Policies", 0, "PolicyDocument", "Statement", 0, "Action")
	if !reflect.DeepEqual(policy.v, statement.v) {
		t.Errorf("a task may %v, and iam/state.json has %v", policy.v, statement.v)
	}
}

// The volume of an instance before must not be formatted, and the instance must
// not be of the cluster before the volume is mounted.
func TestBothECSTemplatesPrepareTheVolumeAlike(t *testing.T) {
	tf := read(t, deploy, "ecs/terraform/user-data.sh")
	cf := yamlFile(t, deploy, "ecs/cloudformation.yaml").
		at("Resources", "LaunchTemplate", "Properties", "LaunchTemplateData", "UserData", "Fn::Base64").text()
	same := strings.NewReplacer("${Volume}", "${volume}", "${AWS::Region}", "${region}", "${Cluster}", "${cluster}").Replace(cf)
	if same != tf {
		t.Errorf("cloudformation.yaml has other user data than user-data.sh:\n%s\nand\n%s", same, tf)
	}
	mkfs, mount, join := strings.Index(tf, `[ "$found" -ne 2 ] || mkfs`), strings.Index(tf, "\nmount "), strings.Index(tf, "ECS_CLUSTER=")
	if mkfs < 0 || mount < mkfs || join < mount || strings.Count(tf, "mkfs") != 1 {
		t.Errorf("want mkfs only when blkid finds nothing, then the mount, then the cluster: at %d, %d, %d", mkfs, mount, join)
	}
}
