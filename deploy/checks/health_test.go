package checks

import (
	"strings"
	"testing"
)

// A container's check runs sluice health, without a shell, which the image lacks. It
// asks whether the daemon is live, never whether it is ready: a restart repairs no sink.
func TestContainersAreChecked(t *testing.T) {
	command := []any{"CMD", "/usr/local/bin/sluice", "health"}
	yamlFile(t, deploy, "compose/compose.yaml").at("services", "sluice", "healthcheck", "test").is(command)
	for _, template := range []string{"ecs/cloudformation.yaml", "ecs/fargate.yaml"} {
		yamlFile(t, deploy, template).at("Resources", "Task", "Properties", "ContainerDefinitions", 0, "HealthCheck", "Command").is(command)
	}
	for file, want := range map[string]string{
		"docker/Dockerfile":     `CMD ["/usr/local/bin/sluice", "health"]` + "\n",
		"ecs/terraform/main.tf": `command = ["CMD", "/usr/local/bin/sluice", "health"],`,
	} {
		if !strings.Contains(read(t, deploy, file), want) {
			t.Errorf("%s has no check %s", file, want)
		}
	}
}
