package recipes_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// An ACL without an entry, such as one that a configuration lacks, is refused
// before there is a lock.
func TestEmptyACL(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		var none []zk.ACL
		for name, made := range map[string]func(opt recipes.NodeOption) error{
			"mutex": func(opt recipes.NodeOption) error { _, err := recipes.NewInterProcessMutex(c, dir, opt); return err },
			"read/write lock": func(opt recipes.NodeOption) error {
				_, err := recipes.NewInterProcessReadWriteLock(c, dir, opt)
				return err
			},
			"semaphore": func(opt recipes.NodeOption) error {
				_, err := recipes.NewInterProcessSemaphoreV2(c, dir, 3, opt)
				return err
			},
			"semaphore mutex": func(opt recipes.NodeOption) error {
				_, err := recipes.NewInterProcessSemaphoreMutex(c, dir, opt)
				return err
			},
		} {
			if err := made(recipes.WithNodeACL(none...)); !errors.Is(err, client.ErrInvalidACL) {
				t.Errorf("%s: %v", name, err)
			}
			r.Check(made(recipes.WithNodeACL(zk.WorldACL(zk.PermAll)...)))
		}
	})
}
