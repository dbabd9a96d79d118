// Package local lets the programs of bench talk to local servers by plain HTTP,
// which costs them little.
package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Unsigned is an Authorization header that DynamoDB Local takes.
const Unsigned = "AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"

// Call makes one request to the DynamoDB Local at url, and decodes the answer
// into out, unless that is nil.
func Call(ctx context.Context, url, action string, request []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(request))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+action)
	req.Header.Set("Authorization", Unsigned)
	body, err := Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}

// Do returns the body of an answer. Another status than 200 is an error.
func Do(req *http.Request) ([]byte, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}
