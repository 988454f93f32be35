package nodes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
)

// Whoever's node stands at one fixed path leads. The czxid of the node is the token of the
// term: each later node has a greater one, so a resource that compares tokens refuses a
// leader that has not noticed yet that it was replaced.
func ExamplePersistentNode_election() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()
	me, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/controller/leader", []byte("10.0.0.7:80"), nodes.WithLazyStart())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := me.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = me.Close() }()
	stored := int64(0) // in the resource that is guarded, in one transaction with the write
	err = eachTerm(ctx, me, func(term context.Context, token int64) {
		if token < stored {
			fmt.Println("refused: a later leader has written")
			return
		}
		stored = token
		fmt.Println("leads", term.Err())
		_ = c.Delete(ctx, "/controller/leader", client.AnyVersion) // an operator ends the term
		<-term.Done()
		fmt.Println("another token:", me.Status().Czxid != token)
		cancel()
	})
	fmt.Println(err)
	// Output:
	// leads <nil>
	// another token: true
	// context canceled
}

// eachTerm calls lead for each node of this process that stands at the path. The context of
// lead ends when the client knows that the node is gone. The next call waits for its return.
func eachTerm(ctx context.Context, me *nodes.PersistentNode, lead func(term context.Context, token int64)) error {
	var token int64
	stop := func() {}
	defer func() { stop() }()
	for now := range me.Changes(ctx) {
		if now.State == nodes.Ours && now.Czxid == token {
			continue // the same node: newer data, or a Set that has failed
		}
		stop()
		stop, token = func() {}, 0
		if now.State != nodes.Ours {
			continue
		}
		term, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		stop, token = func() { cancel(); <-done }, now.Czxid
		go func() { // ends with the term; stop waits for it
			defer close(done)
			lead(term, now.Czxid)
		}()
	}
	return ctx.Err()
}
