package inside

// Withdraw undoes Provide.
func Withdraw() { provided = nil }
