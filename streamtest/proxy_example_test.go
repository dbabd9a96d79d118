package streamtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sluicehq/sluice/streamtest"
)

// counter stands for a real server: it counts the requests that it sees.
func counter() *httptest.Server {
	n := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		fmt.Fprintf(w, `{"count":%d}`, n)
	}))
}

func count(url string) string {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("X-Amz-Target", "Counter_20240101.Count")
	resp, err := http.DefaultClient.Do(req)
	if errors.Is(err, io.EOF) {
		return "no answer"
	} else if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "a part of the answer: " + string(body)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}

// A client of a real server is given the proxy's URL, and meets what a network
// and a service do: here requests that are lost on their way there, and on
// their way back. In a test NewProxy is given its t and ends with it.
func ExampleNewProxy() {
	server := counter()
	defer server.Close()
	proxy := streamtest.NewProxy(nil, server.URL)
	defer proxy.Close()

	proxy.Fail(streamtest.ProxyFault{Op: "Count", Drop: true, Times: 1})
	proxy.Fail(streamtest.ProxyFault{Op: "Count", DropAnswer: true, Times: 1})
	proxy.Fail(streamtest.ProxyFault{Op: "Count", Cut: true, Times: 1})
	for range 4 {
		fmt.Println(count(proxy.URL()))
	}
	c := proxy.Counts()
	fmt.Println(c.Requests, "requests,", c.Forwarded, "of them reached the server")
	// Output:
	// no answer
	// no answer
	// a part of the answer: {"cou
	// 200 {"count":3}
	// 4 requests, 3 of them reached the server
}

// The proxy can answer itself, for a share of the requests that is drawn from
// a seed, and until the fault is removed.
func ExampleProxy_Fail() {
	server := counter()
	defer server.Close()
	proxy := streamtest.NewProxy(nil, server.URL)
	defer proxy.Close()

	heal := proxy.Fail(streamtest.ProxyFault{Status: 429, Body: "slow down", Share: 0.5, Seed: 1})
	for range 4 {
		fmt.Println(count(proxy.URL()))
	}
	heal()
	fmt.Println(count(proxy.URL()))
	// Output:
	// 200 {"count":1}
	// 429 slow down
	// 200 {"count":2}
	// 429 slow down
	// 200 {"count":3}
}

// A Rewrite stands between client and server. It can change the answer, as
// here, and the request, and send it more than once or never.
func ExampleProxyFault_rewrite() {
	server := counter()
	defer server.Close()
	proxy := streamtest.NewProxy(nil, server.URL)
	defer proxy.Close()

	proxy.Fail(streamtest.ProxyFault{Op: "Count", Rewrite: func(request []byte, send func([]byte) (int, []byte)) []byte {
		_, answer := send(request)
		return []byte(strings.Replace(string(answer), "count", "rewritten", 1))
	}})
	fmt.Println(count(proxy.URL()))
	// Output: 200 {"rewritten":1}
}

// Writes that a table has no throughput for come back in UnprocessedItems:
// here half of every request. Who does not send them again loses them.
func ExampleUnprocessed() {
	table := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("the table is asked for %s\n", body)
		fmt.Fprint(w, `{"UnprocessedItems":{}}`)
	}))
	defer table.Close()
	proxy := streamtest.NewProxy(nil, table.URL)
	defer proxy.Close()
	proxy.Fail(streamtest.Unprocessed(0.5, 2))

	request := `{"RequestItems":{"orders":[{"DeleteRequest":{"Key":{"pk":{"S":"1"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"2"}}}}]}}`
	req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, proxy.URL(), strings.NewReader(request))
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.BatchWriteItem")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	fmt.Printf("the client is told %s\n", answer)
	// Output:
	// the table is asked for {"RequestItems":{"orders":[{"DeleteRequest":{"Key":{"pk":{"S":"1"}}}}]}}
	// the client is told {"UnprocessedItems":{"orders":[{"DeleteRequest":{"Key":{"pk":{"S":"2"}}}}]}}
}
