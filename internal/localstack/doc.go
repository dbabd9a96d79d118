// Package localstack runs DynamoDB Local, ElasticMQ and OpenSearch as child
// processes, for the tests and the demo.
//
// All are Java programs. The first start fetches them with Maven into the user's cache
// directory, for all clones and sluice-local. A folder in the cache is named by the hash
// of its pom and appears by a rename, so it is complete or absent. Later starts need no
// Maven and no network. Processes start servers in turn. After fetching, OpenSearch is
// started once more so that Java keeps its classes in a file beside it: later starts take
// less than half of the processor time.
//
// [Start] returns once every server responds. An endpoint in the environment
// ([EnvDynamoDB], [EnvSQS], [EnvOpenSearch], [EnvOpenSearch3]) is used instead,
// such as the images of deploy/local/compose.yaml. OpenSearch 3 needs a newer Java
// than the others, which Start looks for beside the one in use. Without it Start
// logs a line and starts no OpenSearch 3. [StartOpenSearch] is for one test, which
// may kill it.
//
// [FetchPackage] keeps packages of npm in the same cache, such as a browser for tests.
//
// [Stack.Stop] ends the servers. On Unix they also end when the process that started
// them is killed. Their output goes to files beside the cache.
package localstack
