package page

func dial(id, addr string)
func hangUp(id, addr string)
