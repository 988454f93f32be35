package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Several writes happen all or not at all.
func ExampleClient_Multi() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	_, err := c.Multi(ctx,
		client.CreateOp("/accounts", nil),
		client.CreateOp("/accounts/a", []byte("10")),
		client.CreateOp("/accounts/b", []byte("0")))
	fmt.Println(err)
	_, err = c.Multi(ctx,
		client.SetOp("/accounts/a", []byte("3"), 0),
		client.SetOp("/accounts/b", []byte("7"), 0),
		client.CheckOp("/accounts/c", client.AnyVersion)) // there is none
	var refused *client.MultiError
	if errors.As(err, &refused) {
		fmt.Println("refused:", refused.Index, refused.Path)
	}
	data, stat, err := c.Get(ctx, "/accounts/a")
	fmt.Printf("%s, version %d, %v\n", data, stat.Version, err)
	_, err = c.Multi(ctx, client.DeleteOp("/accounts/a", 0), client.DeleteOp("/accounts/b", 0))
	names, _, _ := c.Children(ctx, "/accounts")
	fmt.Println(err, len(names))
	// Output:
	// <nil>
	// refused: 2 /accounts/c
	// 10, version 0, <nil>
	// <nil> 0
}

// A write that another client's write would be lost by is refused by its version.
func ExampleClient_Set() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	_, made, err := c.CreateStat(ctx, "/limit", []byte("10"))
	fmt.Println("version", made.Version, err)
	now, err := c.Set(ctx, "/limit", []byte("20"), made.Version)
	fmt.Println("version", now.Version, err)
	_, err = c.Set(ctx, "/limit", []byte("30"), made.Version)
	fmt.Println(errors.Is(err, client.ErrBadVersion))
	fmt.Println(c.Delete(ctx, "/limit", client.AnyVersion))
	// Output:
	// version 0 <nil>
	// version 1 <nil>
	// true
	// <nil>
}

// A watch fires once: look, wait, look again.
func ExampleClient_GetW() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	if _, err := c.Create(ctx, "/limit", []byte("10")); err != nil {
		fmt.Println(err)
		return
	}
	data, _, changed, err := c.GetW(ctx, "/limit")
	fmt.Printf("%s, %v\n", data, err)
	found, _, made, err := c.ExistsW(ctx, "/flag") // a node that does not exist yet
	fmt.Println(found, err)
	names, _, listed, err := c.ChildrenW(ctx, "/")
	fmt.Println(len(names), err) // limit, and a node of the system

	_, _ = c.Set(ctx, "/limit", []byte("20"), client.AnyVersion)
	_, _ = c.Create(ctx, "/flag", nil)
	<-changed.Done()
	<-made.Done()
	<-listed.Done()
	data, _, err = c.Get(ctx, "/limit")
	fmt.Printf("%s, %v\n", data, err)
	// Output:
	// 10, <nil>
	// false <nil>
	// 2 <nil>
	// 20, <nil>
}

// A watch that stays tells of everything below a node.
func ExampleClient_Watch() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	changes, err := c.Watch(ctx, "/app", client.Recursive())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer changes.Close()
	first, err := changes.Next(ctx)
	fmt.Println(first.Kind == client.ChangeMissed, err) // read all that is there now
	_, _ = c.Create(ctx, "/app/limit", nil, client.WithPersistentParents())
	for range 2 {
		change, err := changes.Next(ctx)
		fmt.Println(change.Path, change.Kind, err)
	}
	// Output:
	// true <nil>
	// /app created <nil>
	// /app/limit created <nil>
}

// A session is what ephemeral nodes and locks belong to.
func ExampleClient_Session() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	s, err := c.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Create(ctx, "/here", nil, client.Ephemeral()) // in this session, and in no later one
	_, stat, _ := c.Exists(ctx, "/here")
	fmt.Println(stat.EphemeralOwner == s.ID(), err)
	fmt.Println(s.Context().Err(), s.Err()) // the context ends with the session
	// Output:
	// true <nil>
	// <nil> <nil>
}

// The states of the connection, for a health check. What works under a lock takes the
// context of its hold.
func ExampleClient_States() {
	c, stop := connected()
	defer stop()
	for change := range c.States(context.Background()) {
		fmt.Println(change.State)
		if change.State == client.Connected {
			_ = c.Close()
		}
	}
	// Output:
	// connected
	// closed
}

func ExampleClient_AddAuth() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	acl := zk.DigestACL(zk.PermAll, "billing", "new-password")
	if _, err := c.Create(ctx, "/invoices", []byte("none"), client.ACL(acl...)); err != nil {
		fmt.Println(err)
		return
	}
	_, _, err := c.Get(ctx, "/invoices")
	fmt.Println(errors.Is(err, client.ErrNoAuth))
	fmt.Println(c.AddAuth(ctx, "digest", "billing:new-password"))
	data, _, err := c.Get(ctx, "/invoices")
	fmt.Println(string(data), err)
	// Output:
	// true
	// <nil>
	// none <nil>
}

// The password has changed: later connections present the new one alone.
func ExampleClient_ReplaceAuth() {
	c, stop := connected()
	defer stop()
	fmt.Println(c.ReplaceAuth(context.Background(), "digest", "billing:new-password"))
	// Output: <nil>
}

func ExampleClient_ChildrenData() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	for key, value := range map[string]string{"colour": "green", "size": "10"} {
		if _, err := c.CreateOrSet(ctx, "/settings/"+key, []byte(value), client.WithParents()); err != nil {
			fmt.Println(err)
			return
		}
	}
	settings, _, err := c.ChildrenData(ctx, "/settings")
	for _, s := range settings {
		fmt.Printf("%s=%s\n", s.Name, s.Data)
	}
	fmt.Println(err)
	// Unordered output:
	// colour=green
	// size=10
	// <nil>
}

func ExampleClient_SetACL() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	if _, err := c.Create(ctx, "/limit", nil); err != nil {
		fmt.Println(err)
		return
	}
	_, err := c.SetACL(ctx, "/limit", zk.WorldACL(zk.PermRead), client.AnyVersion)
	acl, _, _ := c.GetACL(ctx, "/limit")
	fmt.Println(acl[0].Scheme, acl[0].Perms == zk.PermRead, err)
	_, err = c.Set(ctx, "/limit", nil, client.AnyVersion)
	fmt.Println(errors.Is(err, client.ErrNoAuth))
	// Output:
	// world true <nil>
	// true
}

// A sync, and then a read, sees every write that was answered before.
func ExampleClient_Sync() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	fmt.Println(c.Sync(ctx, "/"))
	// Output: <nil>
}

func ExampleValidatePath() {
	fmt.Println(client.ValidatePath("/locks/orders"))
	fmt.Println(client.ValidatePath("locks/orders"))
	// Output:
	// <nil>
	// zk: invalid path "locks/orders": it is relative; a path starts with "/", like "/locks/orders"
}
