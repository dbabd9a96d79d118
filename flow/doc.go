// Package flow runs the routes of records: order per item, concurrency across
// items and pages, retries, and the watermark of what is durable.
package flow
