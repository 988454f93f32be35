package page

func finishEarly()
