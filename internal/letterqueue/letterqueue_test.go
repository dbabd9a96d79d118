package letterqueue

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/internal/letterkeys"
)

// A queue that would refuse every letter is refused at the start.
func TestFIFOIsRefused(t *testing.T) {
	for queue, want := range map[string]string{
		"letters":      "",
		"letters.fifo": `"letters.fifo" is a FIFO queue, which takes no letters: name a standard queue`,
		"https://sqs.us-east-1.amazonaws.com/1/letters.fifo": "is a FIFO queue",
	} {
		_, err := Open(aws.Config{Region: "us-east-1"}, queue, letterkeys.Keys{}, nil, slog.New(slog.DiscardHandler))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", queue, err, want)
		}
	}
}
