package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
)

// noVersion is the flag that was not given.
const noVersion = -1

func newGet(to *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get PATH",
		Short: "Show the data of a node",
		Long: `Get writes the data of a node to standard output as it is, without a line end of its own. With -o it
writes a row with its version, session and times, as docent watch does.`,
		Args: onPath(), ValidArgsFunction: to.completePath(),
	}
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			data, stat, err := c.Get(ctx, args[0])
			if err != nil {
				return missing(args[0], err)
			}
			if cmd.Flags().Changed("output") || cmd.Flags().Changed("json") {
				text, as := string(data), asText
				if !utf8.Valid(data) {
					text, as = base64.StdEncoding.EncodeToString(data), asBase64
				}
				n := nodeRow{
					Path: args[0], Version: stat.Version, Size: len(data), Modified: stat.Mtime, Children: stat.NumChildren,
					Data: text, Encoding: as, Short: text,
				}
				n.Session = sessionOf(stat.EphemeralOwner)
				return write(cmd.OutOrStdout(), *form, []nodeRow{n})
			}
			out := data
			if terminal(cmd.OutOrStdout()) { // other clients wrote it: it must not move the cursor
				out = []byte(strings.ReplaceAll(shown(strings.ReplaceAll(string(data), "\n", "\x00")), "\x00", "\n") + "\n")
			}
			_, err = cmd.OutOrStdout().Write(out)
			return err
		})
	}
	return cmd
}

// nodeRow is a node as `docent get -o` writes it. The names of the JSON fields stay.
type nodeRow struct {
	Path     string `col:"PATH"     json:"path"`
	Version  int32  `col:"VERSION"  json:"version"`
	Children int32  `col:"CHILDREN" json:"children"`
	Session  string `col:"SESSION"  json:"session"`
	Size     int    `col:"SIZE"     json:"size"`
	Short    string `col:"DATA"     json:"-"`
	Data     string `json:"data"`
	Encoding string `json:"encoding"`
	Modified int64  `json:"modified_ms"`
}

// missing names a node that is not there.
func missing(path string, err error) error {
	if errors.Is(err, client.ErrNoNode) {
		return fmt.Errorf("%s does not exist", path)
	}
	return err
}

// dataOf is the data that a command is given: its second argument, or with "-" standard input.
func dataOf(cmd *cobra.Command, args []string) ([]byte, error) {
	if len(args) < 2 {
		return nil, nil
	}
	if args[1] == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	return []byte(args[1]), nil
}

// pathAndData checks for PATH and DATA, of which the second may be missing.
func pathAndData(least int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > 2 {
			return usageError("give PATH%s; \"-\" reads the data from standard input", [...]string{1: " and, if it has data, DATA", 2: " and DATA"}[least])
		}
		return validPath(args[0])
	}
}

func newSet(to *target) *cobra.Command {
	var version int32
	cmd := &cobra.Command{
		Use:   "set PATH DATA",
		Short: "Change the data of a node",
		Long: `Set changes the data of a node that exists; docent create makes one. DATA "-" reads the data from standard
input. With --version it refuses if the node has another version by then.`,
		Example: `  docent set /config/limit 100
  docent set /config/limits - <limits.json`,
		Args: pathAndData(2), ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().Int32Var(&version, "version", noVersion, "only if the node has this version; -1 is any")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		data, err := dataOf(cmd, args)
		if err != nil {
			return err
		}
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			stat, err := c.Set(ctx, args[0], data, version)
			switch {
			case errors.Is(err, client.ErrBadVersion):
				return fmt.Errorf("%s has another version than %d: look again (docent get %s -o table)", args[0], version, args[0])
			case errors.Is(err, client.ErrNoNode):
				return fmt.Errorf("%s does not exist (docent create %s DATA)", args[0], args[0])
			case err != nil:
				return err
			}
			say(cmd.ErrOrStderr(), "set %s: %s, version %d", args[0], counted(len(data), "byte", "bytes"), stat.Version)
			return nil
		})
	}
	return cmd
}

func newCreate(to *target) *cobra.Command {
	var parents bool
	cmd := &cobra.Command{
		Use:   "create PATH [DATA]",
		Short: "Make a node that stays",
		Long: `Create makes a persistent node, for example a mark or a configuration. It fails if the node exists. DATA "-" reads
the data from standard input.`,
		Example: `  docent create --parents /marks/backup/2026-01-31
  docent create /config/limit 100`,
		Args: pathAndData(1), ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().BoolVarP(&parents, "parents", "p", false, "make the parents that are missing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		data, err := dataOf(cmd, args)
		if err != nil {
			return err
		}
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			var opts []client.CreateOption
			if parents {
				opts = append(opts, client.WithPersistentParents())
			}
			_, err := c.Create(ctx, args[0], data, opts...)
			switch {
			case errors.Is(err, client.ErrNodeExists):
				return fmt.Errorf("%s exists (docent set %s DATA)", args[0], args[0])
			case errors.Is(err, client.ErrNoNode):
				return fmt.Errorf("the parent of %s does not exist; give --parents to make it", args[0])
			case err != nil:
				return err
			}
			say(cmd.ErrOrStderr(), "created %s: %s", args[0], counted(len(data), "byte", "bytes"))
			return nil
		})
	}
	return cmd
}

func newRemove(to *target, from streams) *cobra.Command {
	var version int32
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm PATH",
		Short: "Delete a node without children",
		Long: `Rm deletes one node. It shows the node and asks for a yes, unless --yes is given, and refuses if the node is
another one by then. The node of a contender is for docent evict, which says what its owner is told.`,
		Args: onPath(), ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().Int32Var(&version, "version", noVersion, "only if the node has this version; -1 is the one that rm shows")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			data, stat, err := c.Get(ctx, args[0])
			if err != nil {
				return missing(args[0], err)
			}
			if version == noVersion {
				version = stat.Version
			}
			owner := ""
			if session := sessionOf(stat.EphemeralOwner); session != "" {
				owner = ", of the session " + session
			}
			say(cmd.ErrOrStderr(), "%s has version %d, %s%s: %.80q", args[0], stat.Version, counted(len(data), "byte", "bytes"), owner, data)
			if !yes {
				if err := confirm(cmd.ErrOrStderr(), from, "Delete this node? Type yes: "); err != nil {
					return err
				}
			}
			if exists, now, err := c.Exists(ctx, args[0]); err != nil || !exists || now.Czxid != stat.Czxid {
				return errors.Join(err, fmt.Errorf("%s is another node by now, or gone; nothing was done", args[0]))
			}
			err = c.Delete(ctx, args[0], version)
			switch {
			case errors.Is(err, client.ErrBadVersion):
				return fmt.Errorf("%s has another version than %d; nothing was done", args[0], version)
			case errors.Is(err, client.ErrNotEmpty):
				return fmt.Errorf("%s has children; rm deletes single nodes (docent watch --once %s)", args[0], args[0])
			case err != nil:
				return missing(args[0], err)
			}
			say(cmd.ErrOrStderr(), "deleted %s", args[0])
			return nil
		})
	}
	return cmd
}
