package localstack

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/deploy/local"
)

// server is what differs between the servers.
type server struct {
	name string
	pom  []byte
	java java

	archive bool // its classes are kept in a file, for faster starts

	// args returns java's arguments. The working directory contains lib/; run
	// is this run's folder.
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
	java: java{major: 17},
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
	java: java{major: 17},
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

var (
	openSearch2 = openSearch2With("-Xmx1g")
	openSearch3 = openSearch3With("-Xmx1g")

	// These run beside the others, for one test.
	ownOpenSearch2 = openSearch2With("-Xmx512m")
	ownOpenSearch3 = openSearch3With("-Xmx512m")
)

func openSearch2With(memory string) server {
	return openSearch("opensearch2", local.OpenSearch2POM, java{major: 17, compiler: true, anywhere: true}, "-Xms512m", memory)
}

func openSearch3With(memory string) server {
	return openSearch("opensearch3", local.OpenSearch3POM, java{major: 21, compiler: true, anywhere: true}, "-Xms512m", memory,
		"--add-modules", "jdk.incubator.vector")
}

// openSearch returns a node of OpenSearch with its documents in a folder of the
// run that has the server's name.
func openSearch(name string, pom []byte, j java, options ...string) server {
	return server{
		name: name,
		pom:  pom,
		java: j, archive: true,
		args: func(run string, port int) ([]string, error) {
			launcher := filepath.Join(run, name+".java")
			if err := os.WriteFile(launcher, local.OpenSearchNode, 0o600); err != nil {
				return nil, fmt.Errorf("%s: launcher: %w", name, err)
			}
			transport, err := freePort()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return append(slices.Clone(options), "-cp", "lib/*", launcher,
				filepath.Join(run, name), strconv.Itoa(port), strconv.Itoa(transport)), nil
		},
		ready: func(r *http.Response) bool {
			body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
			return err == nil && bytes.Contains(body, []byte(`"number"`))
		},
		started: "started on port ",
	}
}
