package zktest_test

import (
	"testing"

	"github.com/docent-go/docent/zktest"
)

// TestParseVersion takes release numbers and answers to srvr apart.
func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]zktest.Version{
		"3.5.3": zktest.ZooKeeper35, "3.5.10": zktest.ZooKeeper35,
		"3.6.4": zktest.ZooKeeper380, "3.7.2": zktest.ZooKeeper380, "3.8.3": zktest.ZooKeeper380,
		"3.8.4": zktest.ZooKeeper384, "3.8.10": zktest.ZooKeeper384,
		"3.9.0": zktest.ZooKeeper39, "3.10.0": zktest.ZooKeeper39,
		"Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC\nLatency min/avg/max: 0/0.0/0\n": zktest.ZooKeeper380,
	} {
		if got, err := zktest.ParseVersion(text); err != nil || got != want {
			t.Errorf("ParseVersion(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "imok", "3.4.14", "2.9.0", "3.9", "4.0.0",
		"ClickHouse Keeper version: v26.6.1.1-stable\nLatency min/avg/max: 0/0.0/0\n",
	} {
		if got, err := zktest.ParseVersion(text); err == nil {
			t.Errorf("ParseVersion(%q) = %v", text, got)
		}
	}
	for _, v := range []zktest.Version{
		zktest.ZooKeeper35, zktest.ZooKeeper380, zktest.ZooKeeper384, zktest.ZooKeeper39,
	} {
		if got, err := zktest.ParseVersion(v.String()); err != nil || got != v {
			t.Errorf("ParseVersion(%q) = %v, %v", v, got, err)
		}
	}
	if _, err := zktest.Start(zktest.WithVersion(0)); err == nil {
		t.Error("a server of no version starts")
	}
}
