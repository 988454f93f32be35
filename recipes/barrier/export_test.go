package barrier

// SetNames sets where the names of members' nodes come from. They decide the order of Leave.
func SetNames(b *DistributedDoubleBarrier, names func() string) { b.newName = names }
