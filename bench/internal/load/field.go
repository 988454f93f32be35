package load

import "context"

// Locker is one contender's handle of a lock.
type Locker interface {
	Acquire(ctx context.Context) error
	Release(ctx context.Context) error
}

// Contender is what one goroutine uses.
type Contender struct {
	Lock  Locker // of a read/write lock the half that reads
	Write Locker // of a read/write lock the half that writes; else nil
}

// Field is the contenders of one peer, connected.
type Field struct {
	Contenders []Contender
	Polls      bool // waiters ask again and again, so they stop before they acquire
	Floor      bool // is no lock: several may be inside
	Close      func(ctx context.Context)
}
