//go:build unix

package main

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

// stub is a queue service on a loopback address: it answers SendMessage and
// SendMessageBatch after the time that a request to the real one takes, and
// counts messages.
type stub struct {
	*httptest.Server
	latency  time.Duration
	messages atomic.Int64
	requests atomic.Int64
}

func newStub() *stub {
	s := &stub{}
	s.Server = httptest.NewServer(s)
	return s
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		MessageBody string
		Entries     []struct{ Id, MessageBody string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.requests.Add(1)
	time.Sleep(s.latency)
	type result struct{ Id, MessageId, MD5OfMessageBody string }
	var out any
	switch target := r.Header.Get("X-Amz-Target"); target {
	case "AmazonSQS.SendMessage":
		s.messages.Add(1)
		out = result{MessageId: "m", MD5OfMessageBody: sum(in.MessageBody)}
	case "AmazonSQS.SendMessageBatch":
		var done []result
		for _, e := range in.Entries {
			done = append(done, result{Id: e.Id, MessageId: "m-" + e.Id, MD5OfMessageBody: sum(e.MessageBody)})
		}
		s.messages.Add(int64(len(done)))
		out = map[string]any{"Successful": done}
	default:
		http.Error(w, fmt.Sprintf("the stub does not answer %q", target), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	json.NewEncoder(w).Encode(out) //nolint:errcheck // a client that went away has failed by itself
}

func sum(s string) string {
	m := md5.Sum([]byte(s)) // what the service answers and the SDK checks
	return hex.EncodeToString(m[:])
}
