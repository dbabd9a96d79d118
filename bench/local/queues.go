package local

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"path"
	"strings"
)

// Message is a message of a queue.
type Message struct{ ID, MessageBody, MessageDeduplicationID string }

// ServeQueue answers a request in SQS's protocol, for a queue of any name that only takes
// messages. If accept returns false, the request gets no answer.
func ServeQueue(w http.ResponseWriter, r *http.Request, accept func(queue string, messages []Message) bool) {
	var in struct {
		QueueName, QueueURL string
		Message             // of SendMessage
		Entries             []Message
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type result struct{ Id, MessageId, MD5OfMessageBody string }
	sent := func(m Message) result {
		sum := md5.Sum([]byte(m.MessageBody)) // the client checks it
		return result{m.ID, "m-" + m.ID, hex.EncodeToString(sum[:])}
	}
	var out any
	switch _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); op {
	case "GetQueueUrl":
		out = map[string]string{"QueueUrl": "http://" + r.Host + "/1/" + in.QueueName}
	case "GetQueueAttributes":
		out = map[string]any{"Attributes": map[string]string{}}
	case "SendMessage":
		if !accept(path.Base(in.QueueURL), []Message{in.Message}) {
			return
		}
		out = sent(in.Message)
	case "SendMessageBatch":
		if !accept(path.Base(in.QueueURL), in.Entries) {
			return
		}
		results := make([]result, 0, len(in.Entries))
		for _, m := range in.Entries {
			results = append(results, sent(m))
		}
		out = map[string]any{"Successful": results}
	default:
		http.Error(w, "the queue does not answer "+op, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	json.NewEncoder(w).Encode(out) //nolint:errcheck // the client may have gone
}
