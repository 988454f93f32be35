// Package quota reads and writes the texts of quotas, and decides whether one is exceeded,
// as StatsTrack and ZooKeeperServer do.
package quota

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Folder is the node below which quotas are.
const Folder = "/zookeeper/quota"

// Names of the nodes of one quota.
const (
	limitsName = "/zookeeper_limits"
	statsName  = "/zookeeper_stats"
)

// Keys of a text.
const (
	keyCount     = "count"
	keyBytes     = "bytes"
	keyCountHard = "countHardLimit"
	keyBytesHard = "byteHardLimit"
)

// none is the value of a key that is not there, and of a limit that is none.
const none = -1

// LimitsPath is the node with the limits of the tree at path.
func LimitsPath(path string) string { return Folder + path + limitsName }

// StatsPath is the node with the usage of the tree at path.
func StatsPath(path string) string { return Folder + path + statsName }

// OfLimits returns the tree that a node with limits is about, if path is one.
func OfLimits(path string) (string, bool) { return trim(path, limitsName) }

// OfStats returns the tree that a node with the usage is about, if path is one.
func OfStats(path string) (string, bool) { return trim(path, statsName) }

func trim(path, name string) (string, bool) {
	inside, ok := strings.CutPrefix(path, Folder+"/")
	if !ok {
		return "", false
	}
	return strings.CutSuffix("/"+inside, name)
}

// Track is limits or a usage.
type Track map[string]int64

// Parse reads a text. It reports false for a text over which the real server stumbles.
func Parse(data []byte) (Track, bool) {
	t := Track{}
	if data == nil {
		return nil, false
	}
	text := strings.TrimRight(string(data), ",;")
	if text == "" {
		return t, true
	}
	for pair := range strings.SplitSeq(strings.ReplaceAll(text, ";", ","), ",") {
		if pair == "" && len(t) > 0 {
			continue // several separators are one
		}
		key, rest, found := strings.Cut(strings.TrimRight(pair, "="), "=")
		if !found {
			return nil, false
		}
		value, _, _ := strings.Cut(rest, "=")
		n := int64(none)
		if value != "" {
			var err error
			if n, err = strconv.ParseInt(value, 10, 64); err != nil {
				return nil, false
			}
		}
		t[key] = n
	}
	return t, true
}

func (t Track) get(key string) int64 {
	if n, ok := t[key]; ok {
		return n
	}
	return none
}

// Add changes a usage.
func (t Track) Add(count, bytes int64) {
	t[keyCount] = t.get(keyCount) + count
	t[keyBytes] = t.get(keyBytes) + bytes
}

// Usage is the usage of a tree with so many nodes and bytes.
func Usage(count, bytes int64) Track { return Track{keyCount: count, keyBytes: bytes} }

// String writes a text. Readers of 3.4 see the first two values, and the = behind them
// hides the others.
func (t Track) String() string {
	var b strings.Builder
	b.WriteString("count=" + strconv.FormatInt(t.get(keyCount), 10) + ",bytes=" + strconv.FormatInt(t.get(keyBytes), 10))
	keys := slices.Sorted(maps.Keys(t))
	keys = slices.DeleteFunc(keys, func(k string) bool { return k == keyCount || k == keyBytes })
	if len(keys) > 0 {
		b.WriteString("=")
	}
	for _, k := range keys {
		b.WriteString(";" + k + "=" + strconv.FormatInt(t[k], 10))
	}
	return b.String()
}

// Exceeded reports whether a hard limit forbids so many more nodes and bytes.
func Exceeded(limits, usage Track, count, bytes int64) bool {
	over := func(key string, limit, more int64) bool {
		return more != 0 && limit > none && usage.get(key)+more > limit
	}
	return over(keyCount, limits.get(keyCountHard), count) || over(keyBytes, limits.get(keyBytesHard), bytes)
}
