package sasl_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/client/internal/sasl"
)

// No challenge and no proof makes a login panic, and no bytes but the right ones prove
// anything.
func FuzzDigest(f *testing.F) {
	for _, seed := range []string{seenChallenge, "", `a="\`, `realm=,nonce=`, "nonce=n,algorithm=md5-sess", ",,,"} {
		f.Add([]byte(seed), []byte(seenProof))
		f.Add([]byte(seed), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, challenge, proof []byte) {
		d := sasl.NewDigest("docent", "s3cret", "of the client")
		_, _, _ = d.Next(nil)
		answer, proven, err := d.Next(challenge)
		if proven || (answer == nil) == (err == nil) || strings.Contains(string(answer), "s3cret") && !strings.Contains(string(challenge), "s3cret") {
			t.Fatalf("challenge %q: %q, %v, %v", challenge, answer, proven, err)
		}
		if _, proven, _ = d.Next(proof); proven {
			t.Fatalf("challenge %q: %q proves something", challenge, proof)
		}
	})
}
