package client_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A root, or a chroot, that may not be read is there all the same, and the
// credentials were not refused (ZOOKEEPER-2590).
func TestConnectHardened(t *testing.T) {
	t.Parallel()
	hardened := func(r *rig, path string) {
		admin := r.Connect("admin", client.WithAuth("digest", "admin:admin"))
		_, err := admin.SetACL(r.Ctx, path, append(zk.WorldACL(zk.PermCreate), zk.AuthACL(zk.PermAll)...), client.AnyVersion)
		r.Check(err)
	}
	for _, v := range []zktest.Version{zktest.ZooKeeper380, zktest.ZooKeeper384, zktest.ZooKeeper39} {
		for name, tt := range map[string]struct {
			path, connectString string
			opts                []client.Option
		}{
			"root, credentials":             {"/", "zk", []client.Option{client.WithAuth("digest", "app:secret")}},
			"chroot":                        {"/app", "zk/app", nil},
			"chroot, credentials":           {"/app", "zk/app", []client.Option{client.WithAuth("digest", "app:secret")}},
			"chroot under root":             {"/", "zk/app", nil},
			"no chroot and no credentials":  {"/", "zk", nil},
			"chroot under root, and so on":  {"/", "zk/app/prod", []client.Option{client.WithAuth("digest", "app:secret")}},
			"namespace, which is made late": {"/app", "zk/app", []client.Option{client.WithNamespace("ns")}},
		} {
			t.Run(v.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					r.create("/app/prod", "")
					hardened(r, tt.path)
					c, err := r.Open(tt.connectString, "a", tt.opts...)
					r.Check(err)
					_, err = c.Create(r.Ctx, "/below", nil, client.WithParents(), client.ACL(zk.WorldACL(zk.PermAll)...))
					r.Check(err)
				}, zktest.WithVersion(v))
			})
		}
	}
}

// The error of a parent that may not be made names that parent, and not the one that
// was asked for: the ACL to look at is that of the directory above it.
func TestRefusedParentIsNamed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		admin := r.Connect("admin", client.WithAuth("digest", "admin:admin"))
		_, err := admin.SetACL(r.Ctx, "/", append(zk.WorldACL(zk.PermRead), zk.AuthACL(zk.PermAll)...), client.AnyVersion)
		r.Check(err)
		c := r.Connect("a")
		_, err = c.Create(r.Ctx, "/other/mutex/lock", nil, client.WithParents())
		testrig.WantErr(t, err, client.ErrNoAuth)
		wantOutcome(t, err, client.OutcomeRefused)
		wantErrText(t, err, "make parent /other: ", "/other/mutex:")
		_, err = c.CreateOrSet(r.Ctx, "/other/mutex/lock", nil, client.WithParents())
		testrig.WantErr(t, err, client.ErrNoAuth)
		wantErrText(t, err, "make parent /other: ", "/other/mutex:")
	})
}
