//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// electJob is a `docent elect`.
type electJob struct {
	job

	selector bool
	id       string
}

func newElect(to *target, io streams) *cobra.Command {
	j := &electJob{job: job{to: to, io: io}}
	cmd := &cobra.Command{
		Use:   "elect PATH -- COMMAND [ARGUMENT...]",
		Short: "Run a command while this process leads",
		Long: `Elect stands in line on PATH, runs the command while it leads, and gives the lead up when the
command and what it left of its process group have ended.

The nodes are those of Curator's LeaderLatch, or with --selector those of its
LeaderSelector. All participants must use one of them. --id is what the participant is
called in the line, as by Curator's setId. "docent who PATH -o wide" shows it.

With --again docent stands in line again, behind all others, when the lead was lost or the
command has ended with 0. It ends when the command fails, after SIGTERM, SIGINT, SIGHUP
or SIGQUIT, and if no other try to lead can succeed. Turns begin once a second at most.

What becomes of the command if the lead is lost, the signals that it gets, its environment and
the exit codes are those of "docent run". DOCENT_TOKEN grows with every term of the
election. --on-ask has an effect with --selector alone: nobody asks a latch.`,
		Example: `  docent elect --again --id $(hostname) /leaders/indexer -- /usr/local/bin/indexer
  docent elect --selector --timeout 1m /leaders/report -- report.sh`,
		Args: pathAndCommand, ValidArgsFunction: to.completeCommand(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("id") && j.id == "" {
				return usageError("--id is empty; give the participant a name, or leave it out")
			}
			return j.run(cmd, j.open(args[0]), args[1:])
		},
	}
	j.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&j.selector, "selector", false, "use the nodes of Curator's LeaderSelector")
	flags.StringVar(&j.id, "id", "", "what this participant is called; by default its host, process and --name")
	flags.BoolVar(&j.again, "again", false, "stand in line again after a lost lead, and after a command that ended with 0")
	return cmd
}

// open prepares the election.
func (j *electJob) open(at string) opener {
	return func(c *client.Client) (taker, error) {
		var opts []recipes.ElectionOption
		if j.id != "" {
			opts = append(opts, recipes.WithID(j.id))
		}
		e, err := j.election(c, at, opts)
		if err != nil {
			return nil, err
		}
		return either(e.Campaign, e.TryCampaign, func(t *recipes.Term) *recipes.Hold { return t.Hold }), nil
	}
}

// election is that of the layout that the flags name.
func (j *electJob) election(c *client.Client, at string, opts []recipes.ElectionOption) (*recipes.Election, error) {
	if j.selector {
		s, err := recipes.NewLeaderSelector(c, at, opts...)
		if err != nil {
			return nil, err
		}
		return s.Election, nil
	}
	l, err := recipes.NewLeaderLatch(c, at, opts...)
	if err != nil {
		return nil, err
	}
	return l.Election, nil
}
