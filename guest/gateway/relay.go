package gateway

import (
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// bulk is after how many bytes in one direction the kernel moves them on its own.
// That takes a pipe, which is two descriptors and memory of the kernel's: more
// than most connections are worth.
const bulk = 1 << 20

// bufferPool holds buffers for those who have bytes at the moment.
type bufferPool struct{ sync.Pool }

const bufferSize = 16 << 10

var buffers = &bufferPool{sync.Pool{New: func() any { return new([bufferSize]byte) }}}

// Get and Put are what httputil.ReverseProxy wants too.
func (p *bufferPool) Get() []byte  { return p.Pool.Get().(*[bufferSize]byte)[:] }
func (p *bufferPool) Put(b []byte) { p.Pool.Put((*[bufferSize]byte)(b)) }

// splices are the places of those for whom the kernel moves bytes.
type splices chan struct{}

// relay passes bytes both ways until both sides have said that they end, which
// each may do as long before the other as it likes. A connection that breaks
// breaks both.
func (s splices) relay(a, b *net.TCPConn) {
	var wg sync.WaitGroup
	var errs [2]error
	wg.Go(func() { errs[0] = s.pass(a, b) })
	errs[1] = s.pass(b, a)
	wg.Wait()
	if errs[0] == nil && errs[1] == nil {
		// In order, so that the kernel still sends what a slow reader has not taken.
		_ = a.Close()
		_ = b.Close()
	}
}

// pass copies until from ends, then says so to whoever reads to. An error aborts
// both connections, which ends the other direction too.
func (s splices) pass(to, from *net.TCPConn) error {
	more, err := passSome(to, from, bulk)
	for err == nil && more {
		if take(s) {
			_, err = to.ReadFrom(from)
			<-s
			break
		}
		more, err = passSome(to, from, bulk)
	}
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		abort(to)
		abort(from)
	}
	return err
}

// passSome copies limit bytes or a few more; more is false when from has ended. A
// connection that waits holds no buffer.
func passSome(to, from *net.TCPConn, limit int) (more bool, err error) {
	raw, err := from.SyscallConn()
	if err != nil {
		return false, err
	}
	for limit > 0 {
		b, n, err := readReady(raw)
		if err == nil && n > 0 {
			_, err = to.Write(b[:n])
		}
		if b != nil {
			buffers.Put(b)
		}
		if err != nil || n == 0 {
			return false, err
		}
		limit -= n
	}
	return true, nil
}

type rawReader interface {
	Read(func(fd uintptr) bool) error
}

// readReady waits until there is something to read, and takes a buffer only then.
func readReady(raw rawReader) (b []byte, n int, err error) {
	var readErr error
	err = raw.Read(func(fd uintptr) bool {
		b = buffers.Get()
		for n, readErr = unix.Read(int(fd), b); readErr == unix.EINTR; {
			n, readErr = unix.Read(int(fd), b)
		}
		if readErr == unix.EAGAIN {
			buffers.Put(b)
			b = nil
		}
		return b != nil
	})
	if err == nil {
		err = readErr
	}
	return b, max(n, 0), err
}
