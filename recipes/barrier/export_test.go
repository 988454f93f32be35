package barrier

// SetNames sets where the names of members' nodes come from. They decide the order of Leave.
func SetNames(b *DistributedDoubleBarrier, names func() string) { b.newName = names }

// UnderRace says that the race detector slows tests down, so that they explore less.
const UnderRace = underRace
