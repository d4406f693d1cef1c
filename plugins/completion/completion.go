// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// linkName is the program that kubectl looks for on PATH.
const linkName = "kubectl_complete-ocm"

// pluginName is the name under which krew links the plugin.
const pluginName = "kubectl-ocm"

// Options are the flags of completion install and uninstall.
type Options struct {
	options.Output
	// DryRun is none or client; server counts as client.
	DryRun string
	// Dir is the folder of the link; empty picks one.
	Dir string

	f *options.Factory
}

// item is what install or uninstall did with one link.
type item struct {
	Object string       `json:"object"`
	Target string       `json:"target,omitempty"`
	Action fleet.Action `json:"action"`
}

// New returns the command "completion".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{
		Use: "completion", Short: "Set up shell completion",
		Long: options.Long(`
		Set up shell completion.

		For "kubectl ocm", run "kubectl ocm completion install" once: kubectl 1.26 or newer
		then asks the plugin. For the bare binary, load the script for your shell.`),
	})
	for _, s := range shells {
		cmd.AddCommand(&cobra.Command{
			Use: s.name, Short: "Print the completion script for " + s.name, Args: options.Args(0, 0, s.name), Example: options.Example(s.load),
			RunE: func(cmd *cobra.Command, _ []string) error { return s.print(cmd.Root(), f.UI.Streams.Out) },
		})
	}
	cmd.AddCommand(newChange(f, "install", "Create the link "+linkName+" that kubectl uses for completion", (*Options).install),
		newChange(f, "uninstall", "Remove the link "+linkName, (*Options).uninstall))
	return cmd
}

// shells are the shells, with the command that loads the script of each and what prints it.
var shells = []struct {
	name, load string
	print      func(*cobra.Command, io.Writer) error
}{
	{"bash", "source <(kubectl-ocm completion bash)", func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) }},
	{"zsh", "source <(kubectl-ocm completion zsh)", (*cobra.Command).GenZshCompletion},
	{"fish", "kubectl-ocm completion fish | source", func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) }},
	{"powershell", "kubectl-ocm completion powershell | Out-String | Invoke-Expression", (*cobra.Command).GenPowerShellCompletionWithDesc},
}

func newChange(f *options.Factory, use, short string, run func(*Options) ([]item, error)) *cobra.Command {
	o := &Options{f: f}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: options.Args(0, 0, use), Example: options.Example("kubectl ocm completion " + use),
		RunE: func(*cobra.Command, []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			did, err := run(o)
			if err != nil {
				return err
			}
			return o.print(did)
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.DryRun, "dry-run", "none", "none or client: print what would be done")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "client"
	cmd.Flags().StringVar(&o.Dir, "dir", "", "folder of the link; default: beside "+pluginName+", or for a plugin installed by krew a folder of yours on PATH")
	return cmd
}

// Validate checks the flags.
func (o *Options) Validate() error {
	if o.DryRun != "none" && o.DryRun != "client" && o.DryRun != "server" {
		return options.Usage(fmt.Sprintf("wrong value %q for --dry-run", o.DryRun), "use none or client")
	}
	return o.Format.Check()
}

func (o *Options) print(did []item) error {
	if o.Format.Machine() {
		var names []string
		for _, d := range did {
			names = append(names, d.Object)
		}
		return o.f.UI.Result(o.Format, "CompletionResult", did, names)
	}
	suffix := ""
	if o.DryRun != "none" {
		suffix = " (dry run)"
	}
	for _, d := range did {
		o.f.UI.Say("%s %s%s", d.Object, d.Action, suffix)
	}
	return nil
}

// linkPath returns the path of the link and its target. The link goes beside the plugin,
// or, if krew installed the plugin, into another folder of the user's on PATH: krew takes
// every file in its own folder for a plugin, and refuses to work if a link outlives the
// last plugin.
func (o *Options) linkPath() (link, target string, err error) {
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	name, target := linkName+suffix, pluginName+suffix
	if o.Dir != "" {
		return filepath.Join(o.Dir, name), target, nil
	}
	plugin, err := exec.LookPath(pluginName)
	if err != nil {
		return "", "", &fleet.Error{Message: pluginName + " is not on PATH", Cause: "kubectl cannot find the plugin either",
			Fix: fleet.Advice("add the folder of " + pluginName + " to PATH, or name it by --dir")}
	}
	dir := filepath.Dir(plugin)
	if !isKrewFolder(dir) {
		return filepath.Join(dir, name), target, nil
	}
	for _, other := range o.path() {
		if other != dir && !isKrewFolder(other) && o.isOwn(other) {
			return filepath.Join(other, name), plugin, nil
		}
	}
	return filepath.Join(dir, name), target, nil
}

// path returns the folders of PATH.
func (o *Options) path() []string { return filepath.SplitList(o.f.UI.Streams.Getenv("PATH")) }

// isOwn reports whether dir is a writable folder below the user's home.
func (o *Options) isOwn(dir string) bool {
	home := o.f.UI.Streams.Getenv("HOME")
	below, err := filepath.Rel(home, dir)
	info, failure := os.Stat(dir)
	return err == nil && failure == nil && home != "" && filepath.IsLocal(below) && info.IsDir() && info.Mode().Perm()&0o200 != 0
}

// isKrewFolder reports whether dir is the folder in which krew links plugins.
func isKrewFolder(dir string) bool {
	info, err := os.Stat(filepath.Join(filepath.Dir(dir), "receipts"))
	return err == nil && info.IsDir()
}

// install creates the link, and removes one from krew's folder when there is a better
// place for it.
func (o *Options) install() ([]item, error) {
	link, target, err := o.linkPath()
	if err != nil {
		return nil, err
	}
	did, err := o.link(link, target)
	if err != nil {
		return nil, err
	}
	out := []item{did}
	for _, dir := range o.path() {
		old := filepath.Join(dir, filepath.Base(link))
		if old == link || o.Dir != "" || !isKrewFolder(dir) || !isOurLink(old) {
			continue
		}
		if err := o.remove(old); err != nil {
			return out, err
		}
		out = append(out, item{Object: old, Action: fleet.Deleted})
	}
	if isKrewFolder(filepath.Dir(link)) {
		o.f.UI.Note("before \"kubectl krew uninstall ocm\", run: %s", o.f.UI.Own("kubectl ocm completion uninstall"))
	}
	return out, nil
}

func (o *Options) link(link, target string) (item, error) {
	did := item{Object: link, Target: target, Action: fleet.Created}
	if !filepath.IsAbs(target) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(link), target)); err != nil {
			return item{}, &fleet.Error{Message: "there is no " + target + " in " + filepath.Dir(link),
				Fix: fleet.Advice("name the folder of " + target + " by --dir")}
		}
	}
	if info, err := os.Lstat(link); err == nil {
		if old, _ := os.Readlink(link); old == target {
			did.Action = fleet.Unchanged
			return did, nil
		}
		if info.Mode()&os.ModeSymlink == 0 {
			return item{}, &fleet.Error{Kind: fleet.Refused, Message: link + " exists and is not our link",
				Fix: fleet.Advice("remove it yourself, then run this again")}
		}
		did.Action = fleet.Configured
	}
	if o.DryRun != "none" {
		return did, nil
	}
	if did.Action == fleet.Configured {
		if err := os.Remove(link); err != nil {
			return item{}, fmt.Errorf("replacing %s: %w", link, err)
		}
	}
	if err := os.Symlink(target, link); err != nil {
		return item{}, &fleet.Error{Message: "linking " + link, Cause: err.Error(), Fix: fleet.Advice("name a folder of PATH that you may write by --dir")}
	}
	return did, nil
}

// uninstall removes the link from every folder of PATH, or from the folder in Dir.
func (o *Options) uninstall() ([]item, error) {
	link, target, err := o.linkPath()
	if err != nil {
		return nil, err
	}
	found := []string{link}
	if o.Dir == "" {
		for _, dir := range o.path() {
			if other := filepath.Join(dir, filepath.Base(link)); isOurLink(other) && !slices.Contains(found, other) {
				found = append(found, other)
			}
		}
	}
	var out []item
	for _, link := range found {
		if _, err := os.Lstat(link); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if !isOurLink(link) {
			return out, &fleet.Error{Kind: fleet.Refused, Message: link + " is not our link", Fix: fleet.Advice("remove it yourself")}
		}
		if err := o.remove(link); err != nil {
			return out, err
		}
		out = append(out, item{Object: link, Target: target, Action: fleet.Deleted})
	}
	if len(out) == 0 {
		out = []item{{Object: link, Target: target, Action: fleet.Unchanged}}
	}
	return out, nil
}

func (o *Options) remove(link string) error {
	if o.DryRun != "none" {
		return nil
	}
	if err := os.Remove(link); err != nil {
		return fmt.Errorf("removing %s: %w", link, err)
	}
	return nil
}

// isOurLink reports whether the file is a link to the plugin.
func isOurLink(link string) bool {
	target, err := os.Readlink(link)
	return err == nil && strings.HasPrefix(filepath.Base(target), pluginName)
}
