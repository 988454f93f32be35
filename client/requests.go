package client

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/internal/wire"
)

// Requests that several operations send, and what their answers say.

// AnyVersion means every version.
const AnyVersion int32 = -1

// stat is the stat in the answer to x, nil if there is no node.
func stat(x *wire.Exchange) *zk.Stat {
	if x == nil || x.Reply.Code != 0 {
		return nil
	}
	stat := x.Reply.Stat
	return &stat
}

// existing is what the answer to x says of a node, with a stat that is never nil.
func existing(x *wire.Exchange) (bool, *zk.Stat) {
	if now := stat(x); now != nil {
		return true, now
	}
	return false, new(zk.Stat)
}

// deletable refuses nodes for which servers say only "invalid arguments"
// (ZKDatabase.isSpecialPath).
func deletable(full string) error {
	switch full {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return misused("servers do not let %s be deleted", full)
	default:
		return nil
	}
}

func deletion(full string, version int32) *wire.Exchange {
	return &wire.Exchange{Request: wire.Request{Op: wire.OpDelete, Path: full, Version: version}}
}

func transaction(reqs []wire.Request) *wire.Exchange {
	return &wire.Exchange{Request: wire.Request{Op: wire.OpMulti, Parts: reqs}}
}

// checks is a transaction that checks that the nodes exist. It takes a quorum even if
// one does not.
func checks(full []string) *wire.Exchange {
	reqs := make([]wire.Request, len(full))
	for i, path := range full {
		reqs[i] = wire.Request{Op: wire.OpCheck, Path: path, Version: AnyVersion}
	}
	x := transaction(reqs)
	x.Urgent = true // a lease may depend on it
	return x
}

// names are the names that a list says, nil if there is no list or it failed.
func names(x *wire.Exchange) []string {
	if x == nil || !x.Answered() || x.Err() != nil || x.Reply.Code != 0 {
		return nil
	}
	return x.Reply.Names
}

// namesOrNone are names. If the directory is missing there are none.
func namesOrNone(x *wire.Exchange) []string {
	if x != nil && x.Answered() && errors.Is(fate.OfCode(x.Reply.Code), zk.ErrNoNode) {
		return []string{}
	}
	return names(x)
}

// statOf is the stat that a list came with, zero if there is no list or it failed.
func statOf(x *wire.Exchange) zk.Stat {
	if names(x) == nil {
		return zk.Stat{}
	}
	return x.Reply.Stat
}
