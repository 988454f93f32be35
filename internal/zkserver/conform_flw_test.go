package zkserver_test

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"testing"
)

// TestConformTraceMask sets the trace mask.
func TestConformTraceMask(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr := srv.addr
		if got := word(t, addr, "stmk"+string(binary.BigEndian.AppendUint64(nil, 5))); got != "5" {
			t.Errorf("stmk answers %q", got)
		}
		if got := word(t, addr, "gtmk"); got != "5" {
			t.Errorf("gtmk after stmk answers %q", got)
		}
		if got := word(t, addr, "stmk"); got != "" {
			t.Errorf("stmk without a mask answers %q", got)
		}
	})
}

// TestConformLastOperation checks what cons calls the requests, failed ones too.
func TestConformLastOperation(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		lop := regexp.MustCompile(fmt.Sprintf("sid=0x%x,lop=([^,]*),", uint64(c.session)))
		check := func(want string) {
			t.Helper()
			if m := lop.FindStringSubmatch(word(t, addr, "cons")); m == nil || m[1] != want {
				t.Errorf("lop %q, want %s", m, want)
			}
		}
		check("SESS")
		none := []string{}
		for _, r := range []struct {
			op      int32
			payload []byte
			want    string
		}{
			{1, create(root + "/a"), "CREA"},
			{3, body(root, false), "EXIS"},
			{15, create(root + "/b"), "CREA"},
			{2, body(root+"/b", int32(-1)), "DELE"},
			{19, body(root+"/c", []byte{}, openACL, int32(4)), "CREA"},
			{4, body(root, false), "GETD"},
			{21, body(root+"/t", []byte{}, openACL, int32(5), int64(1<<30)), "CREA"},
			{5, body(root, []byte{}, int32(-1)), "SETD"},
			{6, body(root), "GETA"},
			{7, body(root, openACL, int32(-1)), "SETA"},
			{8, body(root, false), "GETC"},
			{9, body(root), "SYNC"},
			{12, body(root, false), "GETC"},
			{14, transaction(part(13, body(root, int32(-1)))), "MULT"},
			{22, transaction(part(4, body(root, false))), "MLTR"},
			{106, body(root, int32(0)), "ADDW"},
			{17, body(root, int32(3)), "CHKW"},
			{18, body(root, int32(3)), "REMW"},
			{101, body(int64(0), none, none, none), "SETW"},
			{103, body(root), "GETE"},
			{104, body(root), "GETACN"},
			{105, body(int64(0), none, none, none, none, none), "STW2"},
			{107, nil, "HOMI"},
			{100, body(int32(0), "digest", []byte("u:p")), "HOMI"}, // counts for none
		} {
			must(t, c, r.op, r.payload, 0)
			check(r.want)
		}
		for _, r := range []struct {
			op      int32
			payload []byte
			code    int32
			want    string
		}{
			{16, body("", "", "", int64(-1)), -123, "NA"},
			{1, create(root), -110, "NA"},
			{4, body(root+"/none", false), -101, "GETD"},
			{14, transaction(part(13, body(root+"/none", int32(-1)))), 0, "MULT"},
			{15, create(root), -110, "NA"},
		} {
			must(t, c, r.op, r.payload, r.code)
			check(r.want)
		}
		must(t, c, -11, nil, 0)
	})
}
