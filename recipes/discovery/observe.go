package discovery

import "github.com/docent-go/docent/client"

// observe tells the hook of the client's observer how many instances there are, whenever that
// changes, until the directory ends. It has a goroutine of its own, as the hook may block.
func (s *ServiceCache) observe(hook func(client.ServiceInfo) func(client.ServiceUpdate)) {
	tell := hook(client.ServiceInfo{Service: s.service, Path: s.tree.Path()})
	if tell == nil {
		return
	}
	now := s.latest.Load()
	for told := (client.ServiceUpdate{Offered: -1}); ; now = s.latest.Load() {
		u := client.ServiceUpdate{Offered: len(now.Instances), Disabled: len(now.Disabled), Skipped: len(now.Skipped), Ended: now.over}
		if u != told {
			tell(u)
		}
		if told = u; u.Ended {
			return
		}
		<-now.superseded // also by the end
	}
}
