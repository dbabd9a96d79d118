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
