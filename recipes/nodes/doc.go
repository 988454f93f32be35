// Package nodes keeps nodes on ZooKeeper registered over lost connections, lost sessions
// and lost answers. Its nodes are the same as Apache Curator's package of that name
// makes, and types keep Curator's names.
//
//	node, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/workers/w1", []byte("10.0.0.7:80"))
//	err = node.Start(ctx) // until it stands; ctx bounds the start alone
//	defer node.Close()
//
// A [PersistentNode] is one node, of any of Curator's modes. A [PersistentTtlNode]
// outlives its process for a time to live. A [GroupMember] is a node among others,
// and tells which others there are.
//
// # Whose node it is
//
// An ephemeral node at the path counts as the caller's only if this object made it
// in the present session. After a lost answer a node that another object of the same
// client made counts as well; [WithProtection] tells them apart. A node that it made in a lost session is replaced in one
// transaction. The node of another session is left alone; see [TakeOver].
//
// docs/persistentnode.md and docs/groupmember.md say what is true after a failure;
// docs/internals/persistentnode.md has the rules.
package nodes
