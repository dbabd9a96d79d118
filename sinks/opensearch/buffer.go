package opensearch

import (
	"compress/gzip"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// maxKept bounds the buffers that are kept for the next request.
const maxKept = 16 << 20

// buffer is the memory of a request's body, or of an answer. It goes back to
// the pool when all who hold it have let go: net/http may read a body for a
// moment after the answer is there, for example of a server that refuses it.
type buffer struct {
	b    []byte
	refs atomic.Int32
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// newBuffer returns an empty buffer that the caller holds.
func newBuffer() *buffer {
	b := buffers.Get().(*buffer)
	b.b = b.b[:0]
	b.refs.Store(1)
	return b
}

// release lets go.
func (b *buffer) release() {
	if b.refs.Add(-1) == 0 && cap(b.b) <= maxKept {
		buffers.Put(b)
	}
}

// reader returns a reader of the bytes; who has it holds the buffer until it is
// closed.
func (b *buffer) reader() io.ReadCloser {
	b.refs.Add(1)
	return &bufferReader{buffer: b, rest: b.b}
}

type bufferReader struct {
	mu     sync.Mutex // net/http may close while it reads
	buffer *buffer    // nil: closed
	rest   []byte
}

func (r *bufferReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buffer == nil {
		return 0, errors.New("the body is closed")
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *bufferReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buffer != nil {
		r.buffer.release()
		r.buffer, r.rest = nil, nil
	}
	return nil
}

// Write appends, for a gzip.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.b = append(b.b, p...)
	return len(p), nil
}

// readAll appends what r has, up to limit bytes.
func (b *buffer) readAll(r io.Reader, limit int) error {
	for {
		if len(b.b) == cap(b.b) {
			b.b = append(b.b, make([]byte, max(4<<10, cap(b.b)))...)[:len(b.b)]
		}
		n, err := r.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(b.b) > limit:
			return errors.New("it is far too long")
		}
	}
}

var gzips = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return w
}}

// gzipped returns the bytes compressed, in a buffer that the caller holds.
func (b *buffer) gzipped() (*buffer, error) {
	out := newBuffer()
	w := gzips.Get().(*gzip.Writer)
	defer gzips.Put(w)
	w.Reset(out)
	_, err := w.Write(b.b)
	if err = errors.Join(err, w.Close()); err != nil {
		out.release()
		return nil, err
	}
	w.Reset(io.Discard) // it must not hold out
	return out, nil
}
