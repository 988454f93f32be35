package peers

import "context"

// RegisteredPath returns the path of a node that Curator keeps.
func (p *Peer) RegisteredPath(ctx context.Context, node string) (string, error) {
	return p.call(ctx, controlThread, "registered-path "+node)
}

// SetRegistered gives such a node new data, a word.
func (p *Peer) SetRegistered(ctx context.Context, node, data string) error {
	_, err := p.call(ctx, controlThread, "registered-set "+node+" "+data)
	return err
}

// Members returns the members that a GroupMember sees, as "id=data" in order.
func (p *Peer) Members(ctx context.Context, member string) (string, error) {
	return p.call(ctx, controlThread, "registered-members "+member)
}

// CloseRegistered closes such a node.
func (p *Peer) CloseRegistered(ctx context.Context, node string) error {
	_, err := p.call(ctx, controlThread, "registered-close "+node)
	return err
}
