package page

func write(any)
func remove(path string)
