package peers

import (
	"context"
	"testing"
)

// StartJava starts a peer that uses Curator. It compiles the peer first if that has not
// been done. Its clients retry with Curator's exponential policy of 100 ms and 5
// retries. It ends the test when it cannot. ctx bounds the compilation only.
func StartJava(ctx context.Context, t testing.TB) *Peer {
	t.Helper()
	return startPeer(ctx, t, "java", javaFlags(compiled(ctx, t, ownSources), "Peer")...)
}

// javaFlags are the arguments that run a class of the program on this class path.
func javaFlags(classPath, class string) []string {
	return []string{
		"-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-cp", classPath, class,
	}
}
