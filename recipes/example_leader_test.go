package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// latchExample is a latch with an id on a server in this process. The caller must call
// end.
func latchExample(ctx context.Context, id string, opts ...recipes.ElectionOption) (latch *recipes.LeaderLatch, end func(), err error) {
	c, end, err := connectExample(ctx)
	if err != nil {
		return nil, nil, err
	}
	latch, err = recipes.NewLeaderLatch(c, "/leaders/scheduler", append(opts, recipes.WithID(id))...)
	return latch, end, err
}

func ExampleElection_Run() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	latch, end, err := latchExample(ctx, "worker-7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	terms := 0
	err = latch.Run(ctx, func(ctx context.Context, term *recipes.Term) error {
		terms++
		fmt.Println("leading, and", term.Err() == nil) // ctx ends before another participant can lead
		if terms == 2 {
			return errors.New("enough")
		}
		return nil // another participant's turn
	})
	fmt.Println(err)
	// Output:
	// leading, and true
	// leading, and true
	// enough
}

func ExampleElection_Campaign() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	latch, end, err := latchExample(ctx, "worker-7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	term, err := latch.Campaign(ctx) // ctx bounds the waiting and nothing after it
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = term.Close() }()
	leader, err := latch.Leader(ctx)
	fmt.Println(leader.ID, leader.FencingToken == term.FencingToken(), err)
	_, err = latch.TryCampaign(ctx)
	fmt.Println(errors.Is(err, recipes.ErrBusy))
	// Output:
	// worker-7 true <nil>
	// true
}

func ExampleElection_Do() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	selector, err := recipes.NewLeaderSelector(c, "/leaders/report")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = selector.Do(ctx, func(_ context.Context, term *recipes.Term) error {
		return selector.TryDo(ctx, func(context.Context, *recipes.Term) error { return nil }) // there is a leader
	})
	fmt.Println(errors.Is(err, recipes.ErrBusy))
	// Output: true
}

func ExampleElection_Participants() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	latch, end, err := latchExample(ctx, "worker-7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	err = latch.Do(ctx, func(ctx context.Context, _ *recipes.Term) error {
		all, err := latch.Participants(ctx)
		for _, p := range all {
			fmt.Println(p.ID, p.Holder)
		}
		return err
	})
	fmt.Println(err)
	_, err = latch.Leader(ctx)
	fmt.Println(errors.Is(err, recipes.ErrNoParticipant))
	// Output:
	// worker-7 true
	// <nil>
	// true
}

func ExampleElection_Observe() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	latch, end, err := latchExample(ctx, "worker-7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	var term *recipes.Term
	for now, err := range latch.Observe(ctx) {
		switch {
		case err != nil:
			fmt.Println(err)
			return
		case now.Vacant && term == nil:
			fmt.Println("there is no leader")
			if term, err = latch.Campaign(ctx); err != nil {
				fmt.Println(err)
				return
			}
		case now.Vacant:
			fmt.Println("there is no leader any more")
			return
		default:
			fmt.Println(now.Leader.ID, "leads", now.Term == term.FencingToken())
			_ = term.Close()
		}
	}
	// Output:
	// there is no leader
	// worker-7 leads true
	// there is no leader any more
}

// The id of a leader is its address, so that clients find it.
func ExampleWithID() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	for _, address := range []string{"10.0.0.7:8080", "10.0.0.8:8080"} { // of a listener that is open already
		leader, err := recipes.NewLeaderLatch(c, "/leaders/scheduler", recipes.WithID(address))
		if err != nil {
			fmt.Println(err)
			return
		}
		err = leader.Do(ctx, func(ctx context.Context, term *recipes.Term) error {
			// More than an address, or what is known later: a node of its own, written while the term lasts.
			_, err := term.Guard(ctx, client.CreateOp(fmt.Sprintf("/leaders/status-%d", term.FencingToken()), []byte("warming up")))
			if err != nil {
				return err
			}
			return callLeader(ctx, c)
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// call 10.0.0.7:8080
	// call 10.0.0.8:8080
}

// callLeader is a client of the leader, which takes no part in the election.
func callLeader(ctx context.Context, c *client.Client) error {
	election, err := recipes.NewLeaderLatch(c, "/leaders/scheduler")
	if err != nil {
		return err
	}
	for now, err := range election.Observe(ctx) {
		if err != nil {
			return err
		}
		if now.Vacant || now.InDoubt {
			continue // wait for the next leader, or for the connection
		}
		fmt.Println("call", now.Leader.ID)
		return nil // a client that goes on calls the next address when the loop yields it
	}
	return ctx.Err()
}

// A leader is told to stop, and leads until another process can take over.
func ExampleTerm_AwaitSuccessor() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	srv, err := zktest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	participant := func(id string) (*recipes.LeaderLatch, func() error) {
		c, err := client.Connect(ctx, srv.Addr())
		if err != nil {
			panic(err)
		}
		latch, err := recipes.NewLeaderLatch(c, "/leaders/scheduler", recipes.WithID(id))
		if err != nil {
			panic(err)
		}
		return latch, c.Close
	}
	latch, end := participant("worker-7")
	defer func() { _ = end() }()
	next, endNext := participant("worker-8")
	defer func() { _ = endNext() }()

	// In a program: told, done := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	told, sigterm := context.WithCancel(ctx)
	defer sigterm()
	led := make(chan error, 1)
	err = latch.Run(told, func(ctx context.Context, term *recipes.Term) error {
		sigterm()
		<-ctx.Done() // told to stop, or the term is lost
		go func() {
			led <- next.Do(context.Background(), func(context.Context, *recipes.Term) error { return nil })
		}()
		grace, done := context.WithTimeout(term.Context(), 5*time.Second) // ctx has ended
		defer done()
		err := term.AwaitSuccessor(grace)
		fmt.Println("a successor stands in line:", err == nil, "- still leading:", latch.Leading())
		return nil // end the work first: the successor leads from here on
	})
	fmt.Println("told to stop:", errors.Is(err, context.Canceled))
	fmt.Println("the next one has led:", <-led == nil, "- leading:", latch.Leading())
	// Output:
	// a successor stands in line: true - still leading: true
	// told to stop: true
	// the next one has led: true - leading: false
}

func ExampleTerm_HandOver() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	latch, end, err := latchExample(ctx, "worker-7", recipes.WithPreferred("worker-1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	term, err := latch.Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = term.HandOver(ctx, "worker-8")
	fmt.Println(errors.Is(err, recipes.ErrNoParticipant), term.Err() == nil) // the term goes on
	fmt.Println(term.Close())
	// Output:
	// true true
	// <nil>
}
