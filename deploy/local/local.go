// Package local holds what defines the servers that Sluice is developed
// against: one Maven pom per server, whose version stands nowhere else, and
// their configuration.
package local

import _ "embed"

// DynamoDBPOM resolves DynamoDB Local: tables and streams on one port.
//
//go:embed dynamodb/pom.xml
var DynamoDBPOM []byte

// ElasticMQPOM resolves ElasticMQ, which speaks the SQS protocol.
//
//go:embed elasticmq/pom.xml
var ElasticMQPOM []byte

// ElasticMQConf is ElasticMQ's configuration, with ${PORT} to be replaced.
//
//go:embed elasticmq/elasticmq.conf
var ElasticMQConf string

// OpenSearch2POM resolves the OpenSearch that most people run today.
//
//go:embed opensearch2/pom.xml
var OpenSearch2POM []byte

// OpenSearch3POM resolves the newest OpenSearch, which needs Java 21.
//
//go:embed opensearch3/pom.xml
var OpenSearch3POM []byte

// OpenSearchNode is the Java program that runs either of them. Its arguments
// are a data folder, the HTTP port and the port for other nodes.
//
//go:embed OpenSearchNode.java
var OpenSearchNode []byte
