package streamtest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice/internal/streamsapi"
)

// One GetRecords call as the poller makes it: the SDK's client, signed, and the
// whole answer read. In memory it costs little more than the client alone.
func BenchmarkGetRecords(b *testing.B) {
	for _, records := range []int{0, 10, 1000} {
		s := NewService(b)
		s.SetLimits(Limits{ReadsPerShard: math.Inf(1)})
		t := s.CreateTable("bench", TableOptions{})
		for i := range records {
			t.Put(map[string]any{"pk": fmt.Sprint(i), "text": "some hundred bytes make an item of usual size, more or less, it does not matter here at all"})
		}
		sockets := s.Config()
		sockets.HTTPClient, sockets.BaseEndpoint = nil, aws.String(s.URL())
		for _, way := range []struct {
			name string
			cfg  aws.Config
		}{{"memory", s.Config()}, {"sockets", sockets}} {
			b.Run(fmt.Sprintf("%s/records=%d", way.name, records), func(b *testing.B) {
				c := streamsapi.New(way.cfg)
				out, err := c.GetShardIterator(b.Context(), &dynamodbstreams.GetShardIteratorInput{
					StreamArn: aws.String(t.StreamARN()), ShardId: &t.Shards()[0].ID, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
				})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.GetRecords(context.Background(), *out.ShardIterator, 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkPut(b *testing.B) {
	t := NewService(b).CreateTable("bench", TableOptions{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		t.Put(map[string]any{"pk": fmt.Sprint(i % 1000), "n": i})
	}
}
