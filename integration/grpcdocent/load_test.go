package grpcdocent_test

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
)

const (
	perSecond = 500
	// atOnce is how many calls are under way at most. Only a machine without a processor for them gets there.
	atOnce = 200
	// patience is for how long a call may take.
	patience = 30 * time.Second
)

// call makes a call, and returns the address of who has answered.
func call(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var from peer.Peer
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Peer(&from)); err != nil {
		return "", err
	}
	return from.Addr.String(), nil
}

// load makes calls, and remembers what has come of them. It hears when connections end.
type load struct {
	conn *grpc.ClientConn
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	made   map[string]int // by address
	failed []failure
	ends   map[string]chan time.Time // of connections, by address
}

// failure is a call that has failed.
type failure struct {
	began time.Time
	err   error
}

func newLoad() *load {
	return &load{done: make(chan struct{}), made: map[string]int{}, ends: map[string]chan time.Time{}}
}

// start makes calls until end. After a while without a processor it makes up for it.
func (l *load) start(ctx context.Context) {
	ctx, l.stop = context.WithCancel(ctx)
	go func() {
		defer close(l.done)
		var calls sync.WaitGroup
		defer calls.Wait()
		turns := make(chan struct{}, atOnce)
		pace := time.NewTicker(time.Second / perSecond)
		defer pace.Stop()
		began := time.Now()
		for n := 0; ; {
			select {
			case <-pace.C:
			case <-ctx.Done():
				return
			}
			for ; n < int(time.Since(began).Seconds()*perSecond); n++ {
				select {
				case turns <- struct{}{}:
				case <-ctx.Done():
					return
				}
				calls.Go(func() {
					defer func() { <-turns }()
					l.call(context.WithoutCancel(ctx))
				})
			}
		}
	}()
}

func (l *load) call(ctx context.Context) {
	began := time.Now()
	at, err := call(ctx, l.conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, failure{began, err})
		return
	}
	l.made[at]++
}

// end ends the load, and waits for the calls that have begun.
func (l *load) end() {
	l.stop()
	<-l.done
}

// take returns how many calls each instance has answered and which have failed, since the last time.
func (l *load) take() (map[string]int, []failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	made, failed := l.made, l.failed
	l.made, l.failed = map[string]int{}, nil
	return made, failed
}

// ended is where it is heard that a connection to an address has ended.
func (l *load) ended(address string) chan time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends[address] == nil {
		l.ends[address] = make(chan time.Time, 100)
	}
	return l.ends[address]
}

type addressKey struct{}

// TagConn is for gRPC.
func (*load) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, addressKey{}, info.RemoteAddr)
}

// HandleConn is for gRPC.
func (l *load) HandleConn(ctx context.Context, event stats.ConnStats) {
	if _, ends := event.(*stats.ConnEnd); !ends {
		return
	}
	if at, ok := ctx.Value(addressKey{}).(net.Addr); ok {
		select {
		case l.ended(at.String()) <- time.Now():
		default:
		}
	}
}

// TagRPC is for gRPC.
func (*load) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC is for gRPC.
func (*load) HandleRPC(context.Context, stats.RPCStats) {}
