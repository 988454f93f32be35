// Package shared holds values that processes share on ZooKeeper. They are
// compatible on the wire with the recipes of Apache Curator's package of the same
// name. Java and Go processes may use the same paths at the same time. Types keep
// Curator's names.
//
//	count, err := shared.NewSharedCount(c, "/pools/db-size", 10)
//	now, err := count.Get(ctx)
//	set, err := count.TrySet(ctx, now, now.Value+1) // only if nobody wrote since
//
// A [SharedCount] can also say how many permits a semaphore has; see
// [github.com/docent-go/docent/recipes.NewInterProcessSemaphoreV2FromCount].
package shared
