package zkserver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// recordedWords returns the folders with a real server's answers to the
// four-letter words, a file each, as masked writes them. The first is the folder
// of the release, which may have only what differs. The second is the folder of
// all releases.
func recordedWords(v zktest.Version) [2]string {
	return [2]string{"testdata/words-" + v.String(), "testdata/words-3.8.0"}
}

// TestWords puts a server without other users into a known state. Then it
// compares the answers to the four-letter words with a real server's answers.
// Wanted are the same lines with the same keys, and the same numbers wherever
// they follow from the state. It runs on zktest as each release, and on a new
// real server when DOCENT_ZK names one. WORDS_RECORD=1 then writes down what that
// server answers otherwise.
func TestWords(t *testing.T) {
	t.Parallel()
	if addr := os.Getenv(realServer); addr != "" {
		compareWords(t, addr)
		return
	}
	for _, v := range releases() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			compareWords(t, zktest.NewServer(t, zktest.WithTick(time.Second), zktest.WithExtendedTypes(),
				zktest.WithVersion(v)).Addr())
		})
	}
}

func compareWords(t *testing.T, addr string) {
	t.Helper()
	release := releaseOf(t, addr)
	first := int64(0) // what the server's start has committed: a container's readiness is a session
	if m := zxids.FindStringSubmatch(word(t, addr, "srvr")); m != nil {
		first, _ = strconv.ParseInt(m[2], 16, 64)
	}
	compareWord := func(w, name string, sessions []string) {
		t.Helper()
		compareWord(t, release, name, masked(w, sinceStart(word(t, addr, w), first), sessions))
	}
	word(t, addr, "srst")
	for _, w := range []string{"isro", "srvr", "dump", "cons", "wchs", "wchp", "wchc"} {
		compareWord(w, w+"-idle", nil)
	}
	sessions := populate(t, addr)
	for _, w := range []string{"dump", "cons", "stat", "srvr", "wchs", "wchp", "wchc", "mntr", "crst"} {
		compareWord(w, w, sessions)
	}
	compareWord("cons", "cons-reset", sessions)
	for _, w := range []string{"ruok", "isro", "conf", "envi", "dirs", "gtmk", "srst", "hash", "nope"} {
		compareWord(w, w, nil)
	}
}

var zxids = regexp.MustCompile(`(Zxid: |lzxid=)0x([0-9a-f]+)`)

// sinceStart takes first off each zxid in an answer.
func sinceStart(answer string, first int64) string {
	return zxids.ReplaceAllStringFunc(answer, func(found string) string {
		m := zxids.FindStringSubmatch(found)
		n, err := strconv.ParseInt(m[2], 16, 64)
		if err != nil || n < first {
			return found
		}
		return m[1] + "0x" + strconv.FormatInt(n-first, 16)
	})
}

// compareWord compares an answer with the recorded one of the name.
func compareWord(t *testing.T, release zktest.Version, name, got string) {
	t.Helper()
	want := recordedWord(t, release, name)
	if got == string(want) {
		return
	}
	if os.Getenv("WORDS_RECORD") != "" {
		own := recordedWords(release)[0]
		if err := errors.Join(os.MkdirAll(own, 0o755),
			os.WriteFile(filepath.Join(own, name+".txt"), []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Errorf("%s, from line %d:\nreal %q\n got %q", name, i+1, a[min(i, len(a)):min(i+4, len(a))], b[min(i, len(b)):min(i+4, len(b))])
			return
		}
	}
}

func recordedWord(t *testing.T, release zktest.Version, name string) []byte {
	t.Helper()
	var err error
	for _, folder := range recordedWords(release) {
		want, readErr := os.ReadFile(filepath.Join(folder, name+".txt"))
		if readErr == nil {
			return want
		}
		err = readErr
	}
	t.Fatalf("no answer of a real server is recorded: %v", err)
	return nil
}

// populate opens two sessions with ephemeral nodes and watches of all kinds, and resets
// the server's statistics. It returns the ids as the words spell them.
func populate(t *testing.T, addr string) []string {
	t.Helper()
	word(t, addr, "srst")
	a, b := dialRaw(t, addr), dialRaw(t, addr)
	var ids []string
	for i, c := range []*raw{a, b} {
		if err := c.handshake(0, int32(8000+1000*i), 0, nil16()); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprintf("0x%x", uint64(c.session)))
	}
	must(t, a, 1, body("/w", []byte("data"), openACL, int32(0)), 0)
	must(t, a, 1, ephemeral("/w/a"), 0)
	must(t, b, 1, ephemeral("/w/b"), 0)
	must(t, a, 1, create("/w"), -110)
	must(t, b, 3, body("/w/b", true), 0)
	must(t, a, 4, body("/w/b", true), 0)
	must(t, b, 3, body("/none", true), -101)
	must(t, b, 12, body("/w", true), 0)
	must(t, a, 106, body("/w", int32(1)), 0)
	must(t, b, 106, body("/p", int32(0)), 0)
	if err := b.sendXid(-2, 11, nil); err != nil {
		t.Fatal(err)
	}
	if pong, err := b.receive(); err != nil || pong.xid != -2 {
		t.Fatalf("ping: %+v, %v", pong, err)
	}
	must(t, a, 3, body("/w", false), 0)
	return ids
}

// masked replaces what differs from server to server and from time to time, and
// sorts what comes in the order of a hash table.
func masked(w, text string, sessions []string) string {
	text = regexp.MustCompile(`/[0-9.]+:[0-9]+`).ReplaceAllString(text, "/ADDRESS")
	text = regexp.MustCompile(`[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d [\d:]{8} \S+ \d{4}`).ReplaceAllString(text, "DATE")
	text = regexp.MustCompile(`(?m)(ersion[:=\t] ?)3\.\d+\..*$`).ReplaceAllString(text, "${1}VERSION")
	for i, id := range sessions {
		text = regexp.MustCompile(id+`\b`).ReplaceAllString(text, fmt.Sprintf("SESSION%d", i+1))
	}
	switch w {
	case "srvr", "stat":
		text = regexp.MustCompile(`max: .*`).ReplaceAllStringFunc(text, numbers)
	case "cons":
		text = regexp.MustCompile(`(est|lresp|llat|minlat|avglat|maxlat)=[^,)]*`).ReplaceAllStringFunc(text, numbers)
	case "dump":
		return maskedDump(text)
	case "conf":
		text = regexp.MustCompile(`(?m)^(clientPort|data.*)=.*$`).ReplaceAllString(text, "$1=...")
	case "dirs":
		return numbers(text)
	case "envi":
		return regexp.MustCompile(`(?m)=.*$`).ReplaceAllString(text, "=...")
	case "mntr":
		return maskedMntr(text)
	}
	switch w {
	case "cons", "stat":
		return sortedBlocks(text, " ")
	case "wchp", "wchc":
		if !strings.HasSuffix(text, "\n\n") && text != "\n" {
			return "no empty line at the end: " + text
		}
		return sortedBlocks(strings.TrimSuffix(text, "\n"), "\t") + "\n"
	}
	return text
}

func numbers(s string) string {
	s = regexp.MustCompile(`-?\d+\.\d+(E-\d+)?`).ReplaceAllString(s, "F")
	return regexp.MustCompile(`-?\d+`).ReplaceAllString(s, "N")
}

// sortedBlocks sorts the lines that start with mark within their neighbours, and
// then the blocks that they make with the line before them.
func sortedBlocks(text, mark string) string {
	blocks := [][]string{{""}}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, mark) {
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], line)
		} else {
			blocks = append(blocks, []string{line})
		}
	}
	var out []string
	for _, b := range blocks {
		slices.Sort(b[1:])
		out = append(out, strings.Join(b, ""))
	}
	if mark == "\t" {
		slices.Sort(out)
	}
	return strings.Join(out, "")
}

// maskedDump leaves out the times at which nothing expires any more.
func maskedDump(text string) string {
	text = regexp.MustCompile(`(?m)^0 expire at DATE:\n`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`Sets \(\d+\)`).ReplaceAllString(text, "Sets (N)")
	// Sessions may or may not share a time.
	text = regexp.MustCompile(`(?m)^\d+ expire at DATE:\n`).ReplaceAllString(text, "N expire at DATE:\n")
	head, rest, _ := strings.Cut(text, "ephemeral nodes dump:")
	owners, conns, _ := strings.Cut(rest, "Connections dump:")
	once := func(s string) string {
		first := strings.Index(s, "N expire")
		if first < 0 {
			return s
		}
		lines := strings.SplitAfter(strings.ReplaceAll(s[first:], "N expire at DATE:\n", ""), "\n")
		slices.Sort(lines)
		return s[:first] + "N expire at DATE:\n" + strings.Join(lines, "")
	}
	summary, blocks, _ := strings.Cut(owners[1:], "\n")
	owners = "\n" + summary + "\n" + sortedBlocks(blocks, "\t")
	return once(head) + "ephemeral nodes dump:" + owners + "Connections dump:" + once(conns)
}

// maskedMntr keeps the numbers that follow from the state, and leaves out the
// statistics of single paths, which exist only as long as the paths. The lines
// are sorted: theirs is the order of a hash table.
func maskedMntr(text string) string {
	keep := strings.Fields(`zk_server_state zk_ephemerals_count zk_num_alive_connections
		zk_outstanding_requests zk_znode_count zk_global_sessions zk_local_sessions zk_packets_sent
		zk_packets_received zk_connection_drop_probability zk_watch_count zk_auth_failed_count
		zk_approximate_data_size zk_last_client_response_size zk_min_client_response_size
		zk_max_client_response_size`)
	var lines []string
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, "\t")
		switch {
		case strings.HasSuffix(key, "_per_namespace"):
			continue
		case !slices.Contains(keep, key) && key != "zk_version":
			value = numbers(value)
		}
		lines = append(lines, key+"\t"+value)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
