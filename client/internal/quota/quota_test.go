package quota_test

import (
	"slices"
	"testing"

	"github.com/docent-go/docent/client/internal/quota"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]quota.Limits{
		"count=5,bytes=100": {Nodes: 5, Bytes: 100}, // of a release before 3.7
		"count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=3": {HardBytes: 10, HardNodes: 3},
		"count=2,bytes=-1=;countHardLimit=3":                   {Nodes: 2, HardNodes: 3},
		"count=-1,bytes=7=;byteHardLimit=9":                    {Bytes: 7, HardBytes: 9},
		"count=-1,bytes=7":                                     {Bytes: 7},
	} {
		got, err := quota.ParseLimits([]byte(text))
		if err != nil || got != want || got.Text() != text {
			t.Errorf("%q: %+v, %v, and back %q", text, got, err, got.Text())
		}
	}
	if got, err := quota.ParseLimits([]byte("countHardLimit=3;bytes=-1;other=4")); err != nil || got != (quota.Limits{HardNodes: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
	if count, size, err := quota.ParseUsage([]byte("count=3,bytes=5")); err != nil || count != 3 || size != 5 {
		t.Errorf("%d, %d, %v", count, size, err)
	}
	for _, text := range []string{"", "nonsense", "count=", "count=x,bytes=1", "=", ",;,"} {
		if got, err := quota.ParseLimits([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	for full, folder := range map[string]string{"/": "/zookeeper/quota", "/a/b": "/zookeeper/quota/a/b"} {
		if got := quota.Folder(full); got != folder || quota.Tree(folder) != full {
			t.Errorf("%s: %s, and back %s", full, got, quota.Tree(got))
		}
	}
	want := []string{"/zookeeper/quota/a", "/zookeeper/quota/a/b"}
	if got := quota.Above("/a/b/c"); !slices.Equal(got, want) {
		t.Errorf("above /a/b/c: %v", got)
	}
	if got := quota.Above("/a"); got != nil {
		t.Errorf("above /a: %v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=3"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := quota.ParseLimits(text)
		if err != nil {
			return
		}
		if again, err := quota.ParseLimits([]byte(l.Text())); err != nil || again != l {
			t.Errorf("%q: %+v, then %+v, %v", text, l, again, err)
		}
	})
}
