package awsclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// maxBody is far above what 1 MB of records or items makes in JSON.
const maxBody = 64 << 20

// RawBody makes a call of the SDK's client leave the body of a successful response
// as bytes, for [Body], instead of decoding it. result is a pointer to the call's
// output, which the client returns empty. Add it to the APIOptions of one call.
// Signing, endpoints and typed errors stay the SDK's.
func RawBody(result any) func(*middleware.Stack) error {
	return func(s *middleware.Stack) error {
		sdk, ok := s.Deserialize.Get("OperationDeserializer")
		if !ok {
			return errors.New("this version of the SDK names its deserializer otherwise than OperationDeserializer")
		}
		if _, err := s.Deserialize.Swap(sdk.ID(), &deserializer{errors: sdk, result: result}); err != nil {
			return err
		}
		return s.Build.Add(identityEncoding, middleware.After)
	}
}

// Body returns the body of an answer, which is the caller's alone, by the
// ResultMetadata of the call's output.
func Body(md middleware.Metadata) ([]byte, error) {
	body, ok := md.Get(bodyKey{}).([]byte)
	if !ok {
		return nil, errors.New("the client returned no body")
	}
	return body, nil
}

type bodyKey struct{}

// identityEncoding asks for a body that is not compressed: within a Region the
// bytes cost nothing, inflating them costs more time than decoding them.
var identityEncoding = middleware.BuildMiddlewareFunc("IdentityEncoding",
	func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
		if req, ok := in.Request.(*smithyhttp.Request); ok {
			req.Header.Set("Accept-Encoding", "identity")
		}
		return next.HandleBuild(ctx, in)
	})

// deserializer keeps the body of a good answer and leaves errors to the SDK.
type deserializer struct {
	errors middleware.DeserializeMiddleware
	result any
}

func (d *deserializer) ID() string { return d.errors.ID() }

func (d *deserializer) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	out, md, err := next.HandleDeserialize(ctx, in)
	resp, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || resp.StatusCode < 200 || resp.StatusCode > 299 {
		return d.errors.HandleDeserialize(ctx, in, answered{out, md, err})
	}
	defer resp.Body.Close()
	body, err := readBody(resp.Response)
	if err != nil {
		return out, md, fmt.Errorf("read the answer: %w", err)
	}
	md.Set(bodyKey{}, body)
	out.Result = d.result
	return out, md, nil
}

// answered is a handler that has already been called.
type answered struct {
	out middleware.DeserializeOutput
	md  middleware.Metadata
	err error
}

func (a answered) HandleDeserialize(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
	return a.out, a.md, a.err
}

// readBody reads the whole response into a new buffer, and checks the service's
// checksum.
func readBody(resp *http.Response) ([]byte, error) {
	if resp.ContentLength > maxBody {
		return nil, fmt.Errorf("body of %d bytes: more than %d", resp.ContentLength, maxBody)
	}
	var body []byte
	var err error
	if resp.ContentLength >= 0 {
		body = make([]byte, resp.ContentLength)
		_, err = io.ReadFull(resp.Body, body)
	} else {
		body, err = readLimited(resp.Body)
	}
	if err != nil {
		return nil, err
	}
	if want := resp.Header.Get("X-Amz-Crc32"); want != "" && !resp.Uncompressed {
		if sum := strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10); sum != want {
			return nil, fmt.Errorf("checksum of the body is %s, but the service says %s", sum, want)
		}
	}
	if resp.Header.Get("Content-Encoding") != "gzip" {
		return body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return readLimited(z)
}

func readLimited(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("body of more than %d bytes", maxBody)
	}
	return body, err
}
