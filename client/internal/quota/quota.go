// Package quota knows the nodes in which ZooKeeper keeps its quotas, and their texts. It has
// neither state nor I/O.
package quota

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Nodes of a quota, below the folder of its tree.
const (
	LimitsNode = "zookeeper_limits"
	UsageNode  = "zookeeper_stats"
)

// root is where servers keep quotas.
const root = "/zookeeper/quota"

// NoUsage is the usage that a new quota begins with. The servers count by themselves then.
const NoUsage = "count=0,bytes=0"

// Folder is the folder with the quota of the tree at full, a path as the servers know it.
func Folder(full string) string {
	if full == "/" {
		return root
	}
	return root + full
}

// Tree is the path of the tree whose quota is in folder.
func Tree(folder string) string {
	if folder == root {
		return "/"
	}
	return strings.TrimPrefix(folder, root)
}

// Above are the folders of all trees that the tree at full is in, without its own and that of
// "/", which has none.
func Above(full string) (folders []string) {
	for i := 1; i < len(full); i++ {
		if full[i] == '/' {
			folders = append(folders, Folder(full[:i]))
		}
	}
	return folders
}

// Limits are client.Quota.
type Limits struct {
	Nodes, Bytes         int64
	HardNodes, HardBytes int64
}

// Keys of the texts.
const (
	nodes     = "count"
	bytes     = "bytes"
	hardNodes = "countHardLimit"
	hardBytes = "byteHardLimit"
)

// Text is how servers want the limits. Releases before 3.7 read up to the second "=", and the
// rest does not disturb them.
func (l Limits) Text() string {
	text := fmt.Sprintf("%s=%d,%s=%d", nodes, orNone(l.Nodes), bytes, orNone(l.Bytes))
	if l.HardNodes > 0 || l.HardBytes > 0 {
		text += "="
	}
	if l.HardBytes > 0 {
		text += fmt.Sprintf(";%s=%d", hardBytes, l.HardBytes)
	}
	if l.HardNodes > 0 {
		text += fmt.Sprintf(";%s=%d", hardNodes, l.HardNodes)
	}
	return text
}

func orNone(n int64) int64 {
	if n > 0 {
		return n
	}
	return -1
}

// ParseLimits reads a text of any release. A limit that it lacks, or that is -1, is 0.
func ParseLimits(text []byte) (Limits, error) {
	all, err := parse(text)
	limit := func(key string) int64 { return max(0, all[key]) }
	return Limits{limit(nodes), limit(bytes), limit(hardNodes), limit(hardBytes)}, err
}

// ParseUsage reads what a tree has.
func ParseUsage(text []byte) (count, size int64, err error) {
	all, err := parse(text)
	return all[nodes], all[bytes], err
}

// parse reads "key=number" between commas and semicolons.
func parse(text []byte) (map[string]int64, error) {
	all := map[string]int64{}
	for pair := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, _ := strings.Cut(pair, "=")
		n, err := strconv.ParseInt(strings.TrimRight(value, "="), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%.100q is no text of a quota", text)
		}
		all[key] = n
	}
	if len(all) == 0 {
		return nil, errors.New("the text of the quota is empty")
	}
	return all, nil
}
