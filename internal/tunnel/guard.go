// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// The head of a frame of the multiplexer: version, type, flags, stream, length.
const (
	frameHead    = 12
	frameData    = 0
	frameWindow  = 1
	framePing    = 2
	frameGoAway  = 3
	flagSyn      = 1
	typeAt       = 1
	flagsAt      = 2
	lengthAt     = 8
	maxFrameData = hubWindow
)

var (
	errForeignStream = errors.New("the agent opened a stream, which only the hub may do")
	errForeignPing   = errors.New("the agent sent a ping, which only the hub does")
	errFrame         = errors.New("the agent sent a malformed frame")
	errSilent        = errors.New("the other side was silent for too long")
	errEnded         = errors.New("the tunnel was ended")
)

// guard is the connection below the multiplexer. It notes when it last heard something and, on
// the hub, refuses frames that an agent never sends: the multiplexer would keep a buffer for each
// stream that the agent opens, and start a goroutine for each of its pings.
type guard struct {
	io.ReadWriteCloser
	clock clock.PassiveClock
	// strict is true on the hub.
	strict bool
	// began is when the connection was handed over, and heard how many nanoseconds later something
	// was heard last: unlike times of day, both ignore that the clock of the machine is set.
	began time.Time
	heard atomic.Int64

	// head collects the head of the frame that is being read, and left is what remains of its
	// data. Only the reader uses them.
	head []byte
	left uint32

	once sync.Once
	// why is why the connection was closed.
	why atomic.Pointer[error]
}

func newGuard(conn io.ReadWriteCloser, c clock.PassiveClock, strict bool) *guard {
	return &guard{ReadWriteCloser: conn, clock: c, strict: strict, began: c.Now()}
}

// Read implements io.Reader.
func (g *guard) Read(b []byte) (int, error) {
	n, err := g.ReadWriteCloser.Read(b)
	if n > 0 {
		g.heard.Store(int64(g.clock.Since(g.began)))
	}
	if g.strict {
		if refused := g.inspect(b[:n]); refused != nil {
			g.end(refused)
			return 0, refused
		}
	}
	return n, err
}

// inspect follows the frames through the bytes that were read.
func (g *guard) inspect(b []byte) error {
	for len(b) > 0 {
		if g.left > 0 {
			skip := min(uint32(len(b)), g.left)
			g.left -= skip
			b = b[skip:]
			continue
		}
		take := min(frameHead-len(g.head), len(b))
		g.head = append(g.head, b[:take]...)
		b = b[take:]
		if len(g.head) < frameHead {
			return nil
		}
		if err := g.inspectHead(); err != nil {
			return err
		}
		g.head = g.head[:0]
	}
	return nil
}

func (g *guard) inspectHead() error {
	syn := binary.BigEndian.Uint16(g.head[flagsAt:])&flagSyn != 0
	switch g.head[typeAt] {
	case frameData:
		if g.left = binary.BigEndian.Uint32(g.head[lengthAt:]); g.left > maxFrameData {
			return errFrame
		}
		if syn {
			return errForeignStream
		}
	case frameWindow:
		if syn {
			return errForeignStream
		}
	case framePing:
		if syn {
			return errForeignPing
		}
	case frameGoAway:
	default:
		return errFrame
	}
	return nil
}

// silence is how long nothing was heard.
func (g *guard) silence() time.Duration {
	return g.clock.Since(g.began) - time.Duration(g.heard.Load())
}

// end closes the connection for this reason, unless it was closed for another.
func (g *guard) end(why error) {
	g.once.Do(func() {
		g.why.Store(&why)
		_ = g.ReadWriteCloser.Close() // which is what unblocks its readers and writers
	})
}

// Close implements io.Closer, for the multiplexer.
func (g *guard) Close() error {
	g.end(io.EOF)
	return nil
}

// reason returns why the connection was closed.
func (g *guard) reason() error {
	if why := g.why.Load(); why != nil {
		return *why
	}
	return nil
}
