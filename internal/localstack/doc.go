// Package localstack runs DynamoDB Local, ElasticMQ and OpenSearch as child
// processes, for the tests and the demo.
//
// All are Java programs. The first start fetches them with Maven into a cache
// folder: .cache/ of the repository, or the user's cache directory outside of
// it. A folder in the cache is named by the hash of the pom it was resolved
// from and appears by a rename, so that it is complete or absent; later starts
// need neither Maven nor a network. Starters of several processes take turns.
// OpenSearch is started once more after that, so that Java keeps its classes in a
// file beside it: later starts take less than half of the processor time.
//
// [Start] returns once every server answers. An endpoint given in the
// environment ([EnvDynamoDB], [EnvSQS], [EnvOpenSearch], [EnvOpenSearch3]) is
// used as it is instead, which is how the images of deploy/local/compose.yaml
// serve. OpenSearch 3 needs a newer Java than the others, which is looked for
// beside the one in use; without it there is a line in the log and no server.
// [StartOpenSearch] is for one test, which may kill it.
//
// The servers end by [Stack.Stop], and on Linux also when the process that
// started them dies in any way. Their output goes to files beside the cache.
package localstack
