package opensearch

import (
	"compress/gzip"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// maxKept limits the buffers that are pooled.
const maxKept = 16 << 20

// buffer is the memory of a request's body or of a response. It returns to the
// pool when all holders have released it: net/http may read a body shortly after
// the response, for example when a server refuses it.
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

// release gives up the caller's hold.
func (b *buffer) release() {
	if b.refs.Add(-1) == 0 && cap(b.b) <= maxKept {
		buffers.Put(b)
	}
}

// reader returns a reader of the bytes. It holds the buffer until it is closed.
func (b *buffer) reader() io.ReadCloser {
	b.refs.Add(1)
	return &bufferReader{buffer: b, rest: b.b}
}

type bufferReader struct {
	mu     sync.Mutex // net/http may close it during a read
	buffer *buffer    // nil: closed
	rest   []byte
}

func (r *bufferReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buffer == nil {
		return 0, errClosed
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

// bodyConn is a connection that writes a buffer's bytes directly. net/http would
// copy them in small parts.
type bodyConn struct{ net.Conn }

// ReadFrom is called by net/http to write a request's body.
func (c bodyConn) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		return io.Copy(c.Conn, r)
	}
	body, ok := limited.R.(*bufferReader)
	if !ok {
		return io.Copy(c.Conn, r)
	}
	n, err := body.writeTo(c.Conn, limited.N)
	limited.N -= n
	return n, err
}

// writeTo writes the unread bytes, up to limit. It holds the buffer meanwhile,
// even if the body is closed.
func (r *bufferReader) writeTo(w io.Writer, limit int64) (int64, error) {
	r.mu.Lock()
	b, rest := r.buffer, r.rest
	if b == nil {
		r.mu.Unlock()
		return 0, errClosed
	}
	rest = rest[:min(int64(len(rest)), limit)]
	r.rest = r.rest[len(rest):]
	b.refs.Add(1)
	r.mu.Unlock()
	defer b.release()
	n, err := w.Write(rest)
	return int64(n), err
}

var errClosed = errors.New("the body is closed")

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
	w.Reset(io.Discard) // the pooled writer must not hold out
	return out, nil
}
