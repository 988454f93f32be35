package fence

// Raise is the statement that stores a token.
func Raise(d Dialect) string { s, _ := d.statements(); return s.raise }

// Newest is the statement that reads the stored token.
func Newest(d Dialect) string { s, _ := d.statements(); return s.newest }
