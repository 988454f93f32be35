package sessions

// derivedPassword returns the password that a Java server gives to session id:
// 16 bytes of java.util.Random seeded from the id.
func derivedPassword(id int64) []byte {
	const (
		superSecret = 0xB3415C00
		multiplier  = 0x5DEECE66D
		mask        = 1<<48 - 1
	)
	seed := (uint64(id) ^ superSecret ^ multiplier) & mask
	password := make([]byte, 0, 16)
	for len(password) < cap(password) {
		seed = (seed*multiplier + 0xB) & mask
		bits := uint32(seed >> 16)
		password = append(password, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	return password
}
