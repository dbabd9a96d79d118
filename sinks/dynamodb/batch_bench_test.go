package dynamodb

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// taker does all writes at once.
type taker struct{}

func (taker) Do(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	const answer = `{"UnprocessedItems":{}}`
	return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: int64(len(answer)), Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// BenchmarkPut measures the cost of a 1 KB item from the call to the answer, in full
// requests to an instant service.
func BenchmarkPut(b *testing.B) {
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: taker{}}
	for name, o := range map[string]Options{
		"no budget": {},
		"a budget":  {Budget: map[string]float64{"t": 1e9}},
	} {
		b.Run(name, func(b *testing.B) {
			o.Keys = map[string][]string{"t": {"pk"}}
			st, err := New(cfg, o)
			if err != nil {
				b.Fatal(err)
			}
			its := make([]sluice.Item, 2500)
			for i := range its {
				attrs := []item.Attribute{item.String("pk", fmt.Sprint(i)), item.Number("n", "12.5")}
				for a := range 10 {
					attrs = append(attrs, item.String(fmt.Sprint("attribute", a), strings.Repeat("x", 80)))
				}
				its[i] = item.Of(attrs...)
			}
			b.SetBytes(int64(len(its[0].Raw())))
			b.ReportAllocs()
			for i := 0; i < b.N; i += len(its) {
				if errs := st.PutAll(b.Context(), "t", its[:min(len(its), b.N-i)]); errs != nil {
					b.Fatal(errs)
				}
			}
		})
	}
}
