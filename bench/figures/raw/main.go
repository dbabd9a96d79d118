//go:build unix

// Command raw reads a shard's backlog as fast as one connection can: plain
// HTTP, not signed, nothing decoded or checked, every answer into the same
// memory. The iterator of the next page is found by looking for its name from
// the answer's end.
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/sluicehq/sluice/bench/figures/tell"
	"github.com/sluicehq/sluice/bench/local"
)

func main() {
	log.SetFlags(0)
	if err := run(os.Getenv("SLUICE_ENDPOINT_DYNAMODB"), os.Getenv(tell.EnvStream)); err != nil {
		log.Fatal("raw: ", err)
	}
}

func run(endpoint, stream string) error {
	r := reader{endpoint: endpoint, answer: make([]byte, 4<<20)}
	shard, err := r.value("DescribeStream", fmt.Sprintf(`{"StreamArn":%q}`, stream), "ShardId")
	if err != nil {
		return err
	}
	iterator, err := r.value("GetShardIterator", fmt.Sprintf(`{"StreamArn":%q,"ShardId":%q,"ShardIteratorType":"TRIM_HORIZON"}`, stream, shard), "ShardIterator")
	if err != nil {
		return err
	}
	var d tell.Drained
	for {
		body, err := r.call("GetRecords", `{"ShardIterator":"`+iterator+`"}`)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(body, []byte(`{"Records":[]`)) { // the end of the backlog
			d.CPU = int64(local.CPU())
			tell.Say(tell.Line{Drained: &d})
			return nil
		}
		d.Last = time.Now().UnixNano()
		if d.First == 0 {
			d.First = d.Last
		}
		if iterator, err = text(body, "NextShardIterator"); err != nil {
			return err
		}
	}
}

type reader struct {
	endpoint string
	answer   []byte
}

func (r *reader) value(action, request, name string) (string, error) {
	body, err := r.call(action, request)
	if err != nil {
		return "", err
	}
	return text(body, name)
}

// call returns an answer, which is valid until the next call.
func (r *reader) call(action, request string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodPost, r.endpoint, bytes.NewReader([]byte(request)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810."+action)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Authorization", local.Unsigned)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.ContentLength < 0 || resp.ContentLength > int64(len(r.answer)) {
		return nil, fmt.Errorf("%s: an answer of %d bytes", action, resp.ContentLength)
	}
	body := r.answer[:resp.ContentLength]
	if _, err := io.ReadFull(resp.Body, body); err != nil {
		return nil, fmt.Errorf("%s: %w", action, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %.1000s", action, resp.Status, body)
	}
	return body, nil
}

// text returns the value of the last member of that name. None of those asked
// for holds an escape.
func text(body []byte, name string) (string, error) {
	name = `"` + name + `":"`
	if i := bytes.LastIndex(body, []byte(name)); i >= 0 {
		value := body[i+len(name):]
		if end := bytes.IndexByte(value, '"'); end >= 0 {
			return string(value[:end]), nil
		}
	}
	return "", fmt.Errorf("no %s in %.1000s", name, body)
}
