package localstack

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/deploy/local"
)

// server is what differs between the servers.
type server struct {
	name string
	pom  []byte

	// args returns java's arguments. The working directory is the one that
	// holds lib/; run is this run's folder.
	args func(run string, port int) ([]string, error)

	// ready judges the answer to GET / on the server's port.
	ready func(*http.Response) bool

	// started is in the log of a server that listens; empty when it says
	// nothing. It tells our server from another's on the same port.
	started string
}

var dynamoDB = server{
	name: "dynamodb",
	pom:  local.DynamoDBPOM,
	args: func(_ string, port int) ([]string, error) {
		return []string{
			"-Xmx512m", "-Djava.library.path=lib", "-Dsqlite4java.library.path=lib", "-cp", "lib/*",
			"com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
			"-inMemory", "-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port),
		}, nil
	},
	// It has no page of its own: a request without a signature is refused.
	ready: func(r *http.Response) bool { return r.StatusCode == http.StatusBadRequest },
}

var elasticMQ = server{
	name: "elasticmq",
	pom:  local.ElasticMQPOM,
	args: func(run string, port int) ([]string, error) {
		conf := filepath.Join(run, "elasticmq.conf")
		text := strings.ReplaceAll(local.ElasticMQConf, "${PORT}", strconv.Itoa(port))
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("elasticmq: configuration: %w", err)
		}
		return []string{"-Xmx256m", "-Dconfig.file=" + conf, "-cp", "lib/*", "org.elasticmq.server.Main"}, nil
	},
	ready:   func(*http.Response) bool { return true },
	started: ") started in ",
}
