package wire_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// statBytes is the stat that someStat is.
func statBytes() []byte {
	b := binary.BigEndian.AppendUint64(nil, 1)
	for _, v := range []uint64{2, 3, 4} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	for _, v := range []uint32{5, 6, 7} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = binary.BigEndian.AppendUint64(b, 8)
	b = binary.BigEndian.AppendUint32(b, 9)
	b = binary.BigEndian.AppendUint32(b, 10)
	return binary.BigEndian.AppendUint64(b, 11)
}

var someStat = zk.Stat{
	Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7,
	EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11,
}

// body is the body of a reply.
func body(parts ...any) []byte { return frame(parts...)[4:] }

func TestDecode(t *testing.T) {
	t.Parallel()
	stat := statBytes()
	created, setPart := []any{1, false, -1, "/a"}, []any{5, false, -1, stat}
	readData, readNames := []any{4, false, 0, "d", stat}, []any{8, false, 0, 2, "a", "b"}
	for name, tt := range map[string]struct {
		op   wire.Op
		body []byte
		want wire.Reply
	}{
		"create":           {wire.OpCreate, body("/a"), wire.Reply{Path: "/a"}},
		"create, null":     {wire.OpCreate, body(-1), wire.Reply{}},
		"create2":          {wire.OpCreate2, body("/a", stat), wire.Reply{Path: "/a", Stat: someStat}},
		"container":        {wire.OpCreateContainer, body("/a", stat), wire.Reply{Path: "/a", Stat: someStat}},
		"container, bare":  {wire.OpCreateContainer, body("/a"), wire.Reply{Path: "/a"}},
		"ttl":              {wire.OpCreateTTL, body("/a", stat), wire.Reply{Path: "/a", Stat: someStat}},
		"reconfig":         {wire.OpReconfig, body("config", stat), wire.Reply{Data: []byte("config"), Stat: someStat}},
		"ephemerals":       {wire.OpGetEphemerals, body(2, "/a", "/b/c"), wire.Reply{Names: []string{"/a", "/b/c"}}},
		"count":            {wire.OpCountNodes, body(7), wire.Reply{Stat: zk.Stat{NumChildren: 7}}},
		"who":              {wire.OpWhoAmI, body(3, "digest", "super", "super", "", "ip", "127.0.0.1"), wire.Reply{ACL: []zk.ACL{{Scheme: "digest", ID: "super"}, {Scheme: "super"}, {Scheme: "ip", ID: "127.0.0.1"}}}},
		"multi, kinds":     {wire.OpMulti, body(slices.Concat([]any{15, false, 0, "/a", stat, 19, false, 0, "/b", stat, 21, false, 0, "/c", stat}, partsEnd)...), wire.Reply{Parts: []wire.Result{{Path: "/a", Stat: &someStat}, {Path: "/b", Stat: &someStat}, {Path: "/c", Stat: &someStat}}}},
		"sync":             {wire.OpSync, body("/a"), wire.Reply{Path: "/a"}},
		"delete":           {wire.OpDelete, nil, wire.Reply{}},
		"exists":           {wire.OpExists, stat, wire.Reply{Stat: someStat}},
		"set":              {wire.OpSetData, stat, wire.Reply{Stat: someStat}},
		"set acl":          {wire.OpSetACL, stat, wire.Reply{Stat: someStat}},
		"data":             {wire.OpGetData, body("data", stat), wire.Reply{Data: []byte("data"), Stat: someStat}},
		"data, null":       {wire.OpGetData, body(-1, stat), wire.Reply{Stat: someStat}},
		"data, empty":      {wire.OpGetData, body(0, stat), wire.Reply{Data: []byte{}, Stat: someStat}},
		"children":         {wire.OpGetChildren, body(3, "a", "", "ccc", stat), wire.Reply{Names: []string{"a", "", "ccc"}, Stat: someStat}},
		"children, none":   {wire.OpGetChildren, body(0, stat), wire.Reply{Names: []string{}, Stat: someStat}},
		"children, null":   {wire.OpGetChildren, body(-1, stat), wire.Reply{Names: []string{}, Stat: someStat}},
		"acl":              {wire.OpGetACL, body(2, 31, "world", "anyone", 1, -1, "", stat), wire.Reply{ACL: []zk.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}, {Perms: 1}}, Stat: someStat}},
		"multi":            {wire.OpMulti, body(slices.Concat(created, setPart, checked, []any{2, false, -1}, partsEnd)...), wire.Reply{Parts: []wire.Result{{Path: "/a"}, {Stat: &someStat}, {}, {}}}},
		"multi, refused":   {wire.OpMulti, body(slices.Concat(failedPart(0), failedPart(-101), failedPart(-2), partsEnd)...), wire.Reply{Parts: []wire.Result{{}, {Code: -101}, {Code: -2}}}},
		"multi, empty":     {wire.OpMulti, body(partsEnd...), wire.Reply{}},
		"multiRead":        {wire.OpMultiRead, body(slices.Concat(readData, readNames, failedPart(-101), partsEnd)...), wire.Reply{Parts: []wire.Result{{Data: []byte("d"), Stat: &someStat}, {Names: []string{"a", "b"}}, {Code: -101}}}},
		"more than needed": {wire.OpExists, append(stat, 1, 2, 3), wire.Reply{Stat: someStat}},
	} {
		got, err := wire.Decode(tt.op, tt.body)
		if err != nil || fmt.Sprintf("%#v", flat(got)) != fmt.Sprintf("%#v", flat(tt.want)) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
}

// flat replaces the pointers of r by what they point to.
func flat(r wire.Reply) (all []any) {
	for _, p := range r.Parts {
		all = append(all, p.Code, p.Path, p.Stat != nil)
		if p.Stat != nil {
			all = append(all, *p.Stat)
		}
	}
	r.Parts = nil
	return append(all, r)
}

// malformed are bodies that no server sends. Some of them would end a process in
// which go-zookeeper reads them.
func malformed() map[string]struct {
	op   wire.Op
	body []byte
} {
	stat := statBytes()
	return map[string]struct {
		op   wire.Op
		body []byte
	}{
		"multi of a type only":       {wire.OpMulti, []byte{0, 0, 0, 13}},
		"multi without an end":       {wire.OpMulti, body(checked...)},
		"multi of nothing":           {wire.OpMulti, nil},
		"multi, unknown type":        {wire.OpMulti, body(4, false, -1, -1, true, -1)},
		"multiRead, a create":        {wire.OpMultiRead, body(1, false, 0, "/a", -1, true, -1)},
		"multiRead, cut in a stat":   {wire.OpMultiRead, body(4, false, 0, "d", stat[:67])},
		"multiRead, cut in a name":   {wire.OpMultiRead, body(8, false, 0, 2, "a", 5, []byte("b"))},
		"multiRead, many names":      {wire.OpMultiRead, body(8, false, 0, 1<<30, "a")},
		"multi, negative type":       {wire.OpMulti, body(-2, false, -1, -1, true, -1)},
		"multi, cut in an error":     {wire.OpMulti, body(-1, false, -1)},
		"multi, cut in a path":       {wire.OpMulti, body(1, false, -1, 5, []byte("/a"))},
		"multi, cut in a stat":       {wire.OpMulti, body(5, false, -1, stat[:67])},
		"multi, negative path":       {wire.OpMulti, body(1, false, -1, -2, -1, true, -1)},
		"children, all of them":      {wire.OpGetChildren, []byte{0xff, 0xff, 0xff, 0xfe}},
		"children, null, no stat":    {wire.OpGetChildren, []byte{0xff, 0xff, 0xff, 0xff}},
		"children, too many":         {wire.OpGetChildren, body(1<<20, "a", stat)},
		"children, one too many":     {wire.OpGetChildren, body(2, "a")},
		"children, count and no end": {wire.OpGetChildren, body(20, stat)},
		"children, negative name":    {wire.OpGetChildren, body(1, -2, stat)},
		"children, null name":        {wire.OpGetChildren, body(1, -1, stat)},
		"children, long name":        {wire.OpGetChildren, body(1, 1<<31-1, stat)},
		"children, cut in the stat":  {wire.OpGetChildren, body(1, "a", stat[:60])},
		"children, nothing":          {wire.OpGetChildren, nil},
		"data, negative":             {wire.OpGetData, body(-2, stat)},
		"data, too long":             {wire.OpGetData, body(100, stat)},
		"data, longest":              {wire.OpGetData, body(1<<31-1, stat)},
		"data, no stat":              {wire.OpGetData, body("data")},
		"data, short length":         {wire.OpGetData, []byte{0, 0, 0}},
		"acl, too many":              {wire.OpGetACL, body(1<<20, stat)},
		"acl, negative":              {wire.OpGetACL, body(-7, stat)},
		"acl, cut":                   {wire.OpGetACL, body(1, 31, "world")},
		"acl, negative scheme":       {wire.OpGetACL, body(1, 31, -5, "anyone", stat)},
		"exists, nothing":            {wire.OpExists, nil},
		"exists, cut":                {wire.OpExists, stat[:67]},
		"set, cut":                   {wire.OpSetData, stat[:1]},
		"set acl, cut":               {wire.OpSetACL, stat[:36]},
		"create, nothing":            {wire.OpCreate, nil},
		"create, negative":           {wire.OpCreate, body(-2)},
		"create, too long":           {wire.OpCreate, body(3, []byte("/a"))},
		"sync, too long":             {wire.OpSync, body(1 << 20)},
		"ttl, cut":                   {wire.OpCreateTTL, []byte{0, 0}},
		"container, negative":        {wire.OpCreateContainer, body(-1 << 31)},
	}
}

// A malformed body fails its own request, which then has an unknown outcome. The
// connection, the requests around it and go-zookeeper's go on.
func TestMalformedReplyFailsItsOwnRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range malformed() {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			seen := r.view(c)
			x, beside, behind := asked(tt.op, "/a"), asked(wire.OpSync, "/b"), asked(wire.OpSync, "/c")
			done := r.do(t.Context(), x, beside)
			p.expect(request(1, x))
			p.expect(request(2, beside))
			later := r.do(t.Context(), behind)
			p.expect(request(3, behind))
			p.write(reply(ownXid(1), 5, 0, tt.body))
			p.write(reply(ownXid(2), 5, 0, "/b"))
			p.write(reply(1, 5, 0))
			p.write(reply(ownXid(3), 5, 0, "/c"))
			if err := <-done; err != nil || !errors.Is(x.Err(), wire.ErrProtocol) || !x.Answered() || !x.Sent() {
				t.Errorf("%s: Do = %v, %v, %+v", name, err, x.Err(), x.Reply)
			}
			if x.Err() != nil && strings.Contains(x.Err().Error(), "/a") {
				t.Errorf("%s: %v", name, x.Err())
			}
			if err := <-later; err != nil || beside.Reply.Path != "/b" || behind.Reply.Path != "/c" || beside.Err() != nil || behind.Err() != nil {
				t.Errorf("%s: the others: %v, %+v, %+v", name, err, beside.Reply, behind.Reply)
			}
			seen.want(t, reply(1, 5, 0))
			if q, _ := r.link.Proof(); q.Kind != wire.SessionCreated {
				t.Errorf("%s: proof %v", name, q.Kind)
			}
			r.wantPending(name, 0, 0)
			r.wantCalls("up")
		})
	}
}

// Each list of an answer with many of them copies its own names. The memory that the answer takes
// is a multiple of its length, also if the lists are many. It is measured, so nothing runs beside it.
func TestAnswerOfManyLists(t *testing.T) { //nolint:paralleltest // see above
	const lists = 4000
	var all []byte
	for range lists {
		all = append(all, body(8, false, 0, 2, "name", "another")...)
	}
	all = append(all, body(partsEnd...)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := wire.Decode(wire.OpMultiRead, all)
	runtime.ReadMemStats(&after)
	if err != nil || len(got.Parts) != lists || !slices.Equal(got.Parts[lists-1].Names, []string{"name", "another"}) {
		t.Fatalf("%d parts, %v", len(got.Parts), err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(30*len(all)) {
		t.Errorf("an answer of %d bytes took %d bytes of memory", len(all), took)
	}
}

// A reply over the limit fails its own request as well, and says so. A reply of
// just the limit does not, also if it is larger than the buffer.
func TestLargeReplyToAnExchange(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{100, 16 << 10, 100 << 10, 4 << 20} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(cfg *wire.Config) { cfg.MaxReply = limit })
			c, p := r.establish()
			seen := r.view(c)
			n := 0
			for _, over := range []int{0, 1, 5, 0, 1 << 20} {
				n++
				data := strings.Repeat("d", limit+over-16-4-68)
				x := asked(wire.OpGetData, "/a")
				done := r.do(t.Context(), x)
				p.expect(request(n, x))
				p.write(reply(ownXid(n), 5, 0, data, statBytes()))
				err := <-done
				switch {
				case over == 0 && (err != nil || x.Err() != nil || x.Reply.Code != 0 || string(x.Reply.Data) != data || x.Reply.Stat != someStat):
					t.Errorf("%d bytes: %v, %v, code %d, %d bytes of data", limit+over, err, x.Err(), x.Reply.Code, len(x.Reply.Data))
				case over > 0 && (err != nil || x.Err() != nil || x.Reply.Code != wire.CodeReplyTooLarge || x.Reply.Data != nil || x.Reply.Zxid != 5):
					t.Errorf("%d bytes: %v, %v, code %d, %d bytes of data", limit+over, err, x.Err(), x.Reply.Code, len(x.Reply.Data))
				}
			}
			seen.want(t)
			r.wantCalls("up")
		})
	}
}
