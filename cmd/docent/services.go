package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/discovery"
)

// The layouts by the names of --codec.
var codecs = map[string]func() discovery.Codec{
	"curator": discovery.Curator, "map": discovery.CuratorMap, "string": discovery.CuratorString,
	"spring": discovery.SpringCloud, "dubbo": discovery.Dubbo, "kratos": discovery.Kratos, "kitex": discovery.Kitex,
	"gokit": discovery.GoKit, "serverset": discovery.Serverset, "nerve": discovery.Nerve, "hostport": discovery.HostPort,
}

// registry is where the services are, and in which layout.
type registry struct {
	to    *target
	codec string
	base  string
}

// services returns the services of the flags.
func (r *registry) services(c *client.Client) (*discovery.ServiceDiscovery, error) {
	d, err := discovery.New(c, r.base, codecs[r.codec]())
	if err != nil {
		return nil, usageError("%w", err)
	}
	return d, nil
}

// check refuses flags that name no registry.
func (r *registry) check() error {
	of, known := codecs[r.codec]
	switch {
	case !known:
		return usageError("--codec %s: take one of %s", r.codec, strings.Join(codecNames(), ", "))
	case r.base == "" && of().Base() == "":
		return usageError("--codec %s has no usual place: say with --base below which path the services are", r.codec)
	case r.base != "":
		if err := client.ValidatePath(r.base); err != nil {
			return usageError("--base: %w", err)
		}
	}
	return nil
}

func codecNames() []string { return slices.Sorted(maps.Keys(codecs)) }

// args returns a check for arguments that names say, and of the flags.
func (r *registry) args(names ...string) cobra.PositionalArgs {
	all := exactly(names...)
	return func(cmd *cobra.Command, args []string) error {
		if err := all(cmd, args); err != nil {
			return err
		}
		return r.check()
	}
}

// with calls f with the services.
func (r *registry) with(cmd *cobra.Command, f func(context.Context, *discovery.ServiceDiscovery) error) error {
	return r.to.connected(cmd, func(ctx context.Context, c *client.Client) error {
		d, err := r.services(c)
		if err != nil {
			return err
		}
		return f(ctx, d)
	})
}

func newServices(to *target, io streams) *cobra.Command {
	r := &registry{to: to}
	cmd := &cobra.Command{
		Use:   "services",
		Short: "Show, register and disable instances of services",
		Long: `Services shows the instances that services have registered, and changes them. --codec says in
which layout they are written, and --base below which path:

  curator               Curator, with payloads of any class, which are left alone
  map, string           Curator, with maps (zone, weight, version, metadata) or texts as payloads
  spring, dubbo         Spring Cloud Zookeeper, Dubbo 3 (/services)
  kratos, kitex, gokit  those libraries (/microservices, /, --base)
  serverset, nerve      Finagle and Aurora; Nerve and Synapse; Prometheus reads both
  hostport              the data is host:port`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("name a command: ls, watch, register, disable or enable")
			}
			return usageError("unknown command %q; take ls, watch, register, disable or enable", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Args has refused before
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&r.codec, "codec", "curator", "layout: `NAME` of the list above")
	flags.StringVar(&r.base, "base", "", "`PATH` below which the services are, if it is not the layout's usual one")
	choices(cmd, "codec", codecNames()...)
	cmd.AddCommand(newServicesList(r), newServicesWatch(r), newServicesRegister(r, io),
		newServicesEdit(r, "disable", "Say that an instance wants no calls", true),
		newServicesEdit(r, "enable", "Say that an instance wants calls again", false))
	return cmd
}

// The states of a node of a service.
const (
	offered  = "offered"
	disabled = "disabled"
	skipped  = "skipped"
)

// instanceRow is a node of a service, as `docent services ls` writes it. The names of the JSON
// fields stay.
type instanceRow struct {
	Service    string            `col:"SERVICE,wide"    json:"service"`
	Node       string            `col:"NODE"            json:"node"`
	State      string            `col:"STATE"           json:"state"`
	Address    string            `col:"ADDRESS"         json:"address"`
	Zone       string            `col:"ZONE,some"       json:"zone"`
	Version    string            `col:"VERSION,some"    json:"version"`
	Weight     int               `json:"weight,omitempty"`
	Share      string            `col:"WEIGHT,some"     json:"-"` // Weight, for a person
	Since      string            `col:"REGISTERED,wide" json:"-"`
	Registered *time.Time        `json:"registered"`
	Metadata   map[string]string `json:"metadata"`
	Endpoints  []string          `json:"endpoints"`
	Reason     string            `col:"REASON,some"     json:"reason"` // why it is skipped
}

func (r instanceRow) level() level {
	return map[string]level{disabled: doubtful, skipped: bad}[r.State]
}

// serviceRow is a service, as `docent services ls` writes it.
type serviceRow struct {
	Service  string `col:"SERVICE"  json:"service"`
	Offered  int    `col:"OFFERED"  json:"offered"`
	Disabled int    `col:"DISABLED" json:"disabled"`
	Skipped  int    `col:"SKIPPED"  json:"skipped"`
}

func (r serviceRow) level() level {
	switch {
	case r.Skipped > 0:
		return bad
	case r.Offered == 0:
		return doubtful
	}
	return usual
}

// instanceRows are the nodes of a snapshot, sorted.
func instanceRows(s *discovery.Snapshot) []instanceRow {
	all := make([]instanceRow, 0, len(s.Instances)+len(s.Disabled)+len(s.Skipped))
	for _, of := range []struct {
		state string
		all   []*discovery.ServiceInstance
	}{{offered, s.Instances}, {disabled, s.Disabled}} {
		for _, i := range of.all {
			r := instanceRow{
				Service: s.Service, Node: i.Node, State: of.state, Address: i.HostPort(), Zone: i.Zone, Version: i.Version,
				Weight: i.Weight, Registered: moment(i.Registered), Metadata: i.Metadata, Endpoints: i.Endpoints,
			}
			if i.Weight != 0 {
				r.Share = strconv.Itoa(i.Weight)
			}
			if !i.Registered.IsZero() {
				r.Since = i.Registered.UTC().Format(time.RFC3339)
			}
			all = append(all, r)
		}
	}
	for _, one := range s.Skipped {
		all = append(all, instanceRow{Service: s.Service, Node: one.Node, State: skipped, Reason: one.Err.Error()})
	}
	slices.SortFunc(all, func(a, b instanceRow) int { return strings.Compare(a.Node, b.Node) })
	return all
}

func newServicesList(r *registry) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [SERVICE]",
		Short: "List services, or the instances of one",
		Long: `Ls lists the services with how many instances they have. With SERVICE it lists the nodes of that one:

  offered    callers use it
  disabled   it stands, and wants no calls
  skipped    it is no usable instance, for the REASON; Java's readers may fail because of it`,
		Example: `  docent services ls --base /services
  docent services ls orders --codec spring --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("unexpected argument %q", args[1])
			}
			return r.check()
		},
	}
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.with(cmd, func(ctx context.Context, d *discovery.ServiceDiscovery) error {
			if len(args) == 0 {
				return r.list(ctx, cmd, d, *form)
			}
			s, err := d.Instances(ctx, args[0])
			if err != nil {
				return err
			}
			rows := instanceRows(s)
			if len(rows) == 0 {
				say(cmd.ErrOrStderr(), "there is no instance at %s; docent services ls --codec %s --base %s lists the services", d.Path(args[0]), r.codec, d.Base())
			}
			return write(cmd.OutOrStdout(), *form, rows)
		})
	}
	return cmd
}

// list writes the services.
func (r *registry) list(ctx context.Context, cmd *cobra.Command, d *discovery.ServiceDiscovery, form format) error {
	names, err := d.Services(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		say(cmd.ErrOrStderr(), "there is no service below %s (--base)", d.Base())
	}
	var rows []serviceRow
	var unread []error // the others are shown all the same
	for _, name := range names {
		s, err := d.Instances(ctx, name)
		if err != nil {
			unread = append(unread, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		rows = append(rows, serviceRow{name, len(s.Instances), len(s.Disabled), len(s.Skipped)})
	}
	if err := write(cmd.OutOrStdout(), form, rows); err != nil {
		return err
	}
	return errors.Join(unread...)
}

func newServicesEdit(r *registry, name, short string, off bool) *cobra.Command {
	return &cobra.Command{
		Use:   name + " SERVICE NODE",
		Short: short,
		Long: short + `. NODE is as docent services ls shows it. Whoever has registered the instance need
not know. If its program makes the node again, as after a lost session, the node is again as the program
wants it.`,
		Example: "  docent services " + name + " orders 5c0e6f0a-7d0b-4b7e-9d2c-3a1f1c9a8e42 --codec spring",
		Args:    r.args("SERVICE", "NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.with(cmd, func(ctx context.Context, d *discovery.ServiceDiscovery) error {
				was := false
				err := d.Edit(ctx, args[0], args[1], func(i *discovery.ServiceInstance) error {
					was = i.Disabled
					i.Disabled = off
					return nil
				})
				switch {
				case errors.Is(err, client.ErrNoNode):
					return fmt.Errorf("%s/%s does not exist; docent services ls %s --codec %s --base %s lists what does", d.Path(args[0]), args[1], args[0], r.codec, d.Base())
				case errors.Is(err, discovery.ErrNotCarried):
					return fmt.Errorf("%w: its readers do not look for that; end the program instead", err)
				case err != nil:
					return err
				case was == off:
					say(cmd.ErrOrStderr(), "%s was %sd before", args[1], name)
				}
				return nil
			})
		},
	}
}

// happened is a change of a service, as `docent services watch` writes it. The names of the JSON
// fields stay.
type happened struct {
	Time    string `col:"TIME"        json:"time"` // when docent saw it
	Kind    string `col:"KIND"        json:"kind"`
	Node    string `col:"NODE"        json:"node"`
	Address string `col:"ADDRESS"     json:"address"`
	Zone    string `col:"ZONE,wide"   json:"zone"`
	Zxid    int64  `col:"ZXID,wide"   json:"zxid"`
	Reason  string `col:"REASON"      json:"reason"`
}

// The kinds of changes, beside the states of nodes.
const (
	departed = "gone"
	stale    = "stale"
	synced   = "synced"
)

func (h happened) level() level {
	return map[string]level{disabled: doubtful, departed: doubtful, skipped: bad, stale: bad}[h.Kind]
}

func newServicesWatch(r *registry) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch SERVICE",
		Short: "Show the instances of a service, and their changes as they come",
		Long: `Watch writes the instances of a service, and then each change, until it gets a signal. The service need not
exist. The kinds of lines are offered, disabled, skipped (as of docent services ls; a line is there again
if the instance has changed), gone, stale (the servers do not answer: there may be changes that are not shown) and
synced (all is shown again).`,
		Example: "  docent services watch orders --base /services -o jsonl",
		Args:    r.args("SERVICE"),
	}
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *form == asJSON {
			return usageError("-o json (--json) is one document, and a watch has no end: take -o jsonl")
		}
		return r.with(cmd, func(ctx context.Context, d *discovery.ServiceDiscovery) error {
			s, err := d.Cache(args[0], discovery.WithLazyStart())
			if err != nil {
				return err
			}
			defer s.Close()
			if err := s.Start(ctx); err != nil {
				return err
			}
			out := newListing[happened](cmd.OutOrStdout(), *form)
			var before discovery.Snapshot
			for now, err := range s.Changes(ctx) {
				if err != nil {
					return err
				}
				if err := out.add(changesOf(&before, now)...); err != nil {
					return err
				}
				before = *now
			}
			return nil
		})
	}
	return cmd
}

// changesOf are the changes from one snapshot to the next.
func changesOf(before, now *discovery.Snapshot) (all []happened) {
	at := time.Now().UTC().Format(time.RFC3339)
	was := map[string]instanceRow{}
	for _, r := range instanceRows(before) {
		was[r.Node] = r
	}
	for _, r := range instanceRows(now) {
		old, there := was[r.Node]
		delete(was, r.Node)
		if same := there && old.State == r.State && old.Reason == r.Reason && equalInstances(before, now, r.Node); !same {
			all = append(all, happened{at, r.State, r.Node, r.Address, r.Zone, now.Zxid, r.Reason})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(was)) {
		all = append(all, happened{at, departed, node, was[node].Address, was[node].Zone, now.Zxid, ""})
	}
	if now.Stale != before.Stale {
		h := happened{Time: at, Kind: synced, Zxid: now.Zxid}
		if now.Stale {
			h.Kind = stale
			if now.Err != nil {
				h.Reason = now.Err.Error()
			}
		}
		all = append(all, h)
	}
	return all
}

// equalInstances reports whether a node of two snapshots has the same data.
func equalInstances(before, now *discovery.Snapshot, node string) bool {
	return string(raw(before, node)) == string(raw(now, node))
}

// raw is the data of a node that is an instance.
func raw(s *discovery.Snapshot, node string) []byte {
	for _, all := range [][]*discovery.ServiceInstance{s.Instances, s.Disabled} {
		if at, is := slices.BinarySearchFunc(all, node, func(i *discovery.ServiceInstance, node string) int { return strings.Compare(i.Node, node) }); is {
			return all[at].Raw
		}
	}
	return nil
}
