// Package opensearch writes documents to an OpenSearch cluster.
//
//	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{"https://search.example.com:9200"}})
//
// [Client.Call] makes any request of its REST API.
package opensearch
