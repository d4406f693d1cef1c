// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// used is a context that this run uses, with its entries; nil for one that is missing.
type used struct {
	name    string
	context *clientcmdapi.Context
	cluster *clientcmdapi.Cluster
	user    *clientcmdapi.AuthInfo
}

// usedContexts returns the contexts of --context and --hub-context that are in the kubeconfig, and
// the whole of it.
func (o *Options) usedContexts() ([]used, *clientcmdapi.Config) {
	raw, err := o.f.Kubeconfig().GetStartingConfig()
	if err != nil {
		return nil, nil // opening a cluster reports it
	}
	var out []used
	for _, name := range []string{o.f.Selected(), o.HubContext} {
		if c := raw.Contexts[name]; c != nil && !slices.ContainsFunc(out, func(u used) bool { return u.name == name }) {
			out = append(out, used{name, c, raw.Clusters[c.Cluster], raw.AuthInfos[c.AuthInfo]})
		}
	}
	return out, raw
}

// contexts reports entries of the kubeconfig with which a context cannot be used, or not safely.
func (o *Options) contexts(context.Context) []check.Finding {
	contexts, raw := o.usedContexts()
	var out []check.Finding
	for _, u := range contexts {
		if u.cluster == nil {
			out = append(out, u.broken(fmt.Sprintf("its cluster %q is not in the kubeconfig", u.context.Cluster),
				u.config("set-context "+ui.ShellWord(u.name)+" --cluster="+only(slices.Collect(maps.Keys(raw.Clusters)), "cluster"), u.context.LocationOfOrigin)))
		} else {
			out = append(out, u.server()...)
		}
		if u.user == nil && u.context.AuthInfo != "" {
			out = append(out, u.broken(fmt.Sprintf("its user %q is not in the kubeconfig", u.context.AuthInfo),
				u.config("set-context "+ui.ShellWord(u.name)+" --user="+only(slices.Collect(maps.Keys(raw.AuthInfos)), "user"), u.context.LocationOfOrigin)))
		}
		if u.user != nil {
			out = append(out, o.credential(u)...)
		}
	}
	return out
}

// only returns the only name there is, quoted for a shell, or where a person has to choose the word
// to replace.
func only(names []string, what string) string {
	if len(names) == 1 {
		return ui.ShellWord(names[0])
	}
	return "<" + what + ">"
}

// config is the fix that changes the kubeconfig file in which an entry is.
func (u used) config(words, file string) fleet.Fix {
	return fleet.Advice("kubectl config " + words + " --kubeconfig " + ui.ShellWord(file))
}

// broken is the finding that a context cannot be used.
func (u used) broken(cause string, fix fleet.Fix) check.Finding {
	return check.Finding{Code: check.CodeContext, Severity: check.SeverityError, Title: fmt.Sprintf("context %q cannot be used", u.name), Cause: cause, Fix: fix}
}

// server reports how a context fails to verify its server.
func (u used) server() []check.Finding {
	set := "set-cluster " + ui.ShellWord(u.context.Cluster) + " --certificate-authority=<file> --embed-certs=true"
	switch file := u.cluster.CertificateAuthority; {
	case u.cluster.InsecureSkipTLSVerify:
		return warned(check.CodeContext, fmt.Sprintf("context %q does not verify its server", u.name),
			"insecure-skip-tls-verify: whoever is on the way to the server can read and change everything",
			u.config(set+" --insecure-skip-tls-verify=false", u.cluster.LocationOfOrigin))
	case file != "" && len(u.cluster.CertificateAuthorityData) == 0 && !isReadable(file):
		return []check.Finding{u.broken("the CA of its cluster cannot be read: "+file, u.config(set, u.cluster.LocationOfOrigin))}
	}
	return nil
}

// credential reports a login of a context that cannot work.
func (o *Options) credential(u used) []check.Finding {
	const renew = " --client-certificate=<file> --client-key=<file> --embed-certs=true"
	set := u.config("set-credentials "+ui.ShellWord(u.context.AuthInfo)+renew, u.user.LocationOfOrigin)
	certificate := u.user.ClientCertificateData
	for _, file := range []struct {
		path string
		data []byte
	}{{u.user.ClientCertificate, u.user.ClientCertificateData}, {u.user.ClientKey, u.user.ClientKeyData}} {
		if file.path != "" && len(file.data) == 0 && !isReadable(file.path) {
			return []check.Finding{u.broken("a file of its user cannot be read: "+file.path, set)}
		}
	}
	if u.user.ClientCertificate != "" && len(certificate) == 0 {
		certificate, _ = os.ReadFile(u.user.ClientCertificate)
	}
	now := o.f.UI.Streams.Clock.Now()
	if chain, err := trust.Certificates(certificate); err == nil && !now.Before(chain[0].NotAfter) {
		return []check.Finding{u.broken("the certificate of its user expired "+ago(now, chain[0].NotAfter), set)}
	}
	return o.loginOf(u)
}

// loginOf reports a token of a context, or a program that gets one, that cannot work.
func (o *Options) loginOf(u used) []check.Finding {
	now := o.f.UI.Streams.Clock.Now()
	if u.user.TokenFile != "" && !isReadable(u.user.TokenFile) {
		return []check.Finding{u.broken("the token of its user cannot be read: "+u.user.TokenFile,
			fleet.Advice("write a token for the cluster into "+u.user.TokenFile))}
	}
	if end := token.Expiry(u.user.Token); u.user.TokenFile == "" && !end.IsZero() && !now.Before(end) {
		return []check.Finding{u.broken("the token of its user expired "+ago(now, end),
			u.config("set-credentials "+ui.ShellWord(u.context.AuthInfo)+" --token=<token>", u.user.LocationOfOrigin))}
	}
	if e := u.user.Exec; e != nil && !o.canRun(e.Command) {
		return []check.Finding{u.broken("its user logs in with the program "+e.Command+", which is not on PATH",
			fleet.Advice(fleet.OrElse(fleet.OneLine(e.InstallHint), "install "+e.Command)))}
	}
	return nil
}

// ago says how long a time is over.
func ago(now, then time.Time) string { return duration.HumanDuration(now.Sub(then)) + " ago" }

// canRun reports whether a program is on PATH, or at its path.
func (o *Options) canRun(program string) bool {
	if strings.ContainsRune(program, os.PathSeparator) {
		_, err := exec.LookPath(program)
		return err == nil
	}
	return options.OnPath(o.f.UI, program) != ""
}

func isReadable(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// hidden reports names that several kubeconfig files give to different things: the first file
// counts, and kubectl says nothing of the others.
func (o *Options) hidden(context.Context) []check.Finding {
	contexts, raw := o.usedContexts()
	if raw == nil || o.f.Kubeconfig().IsExplicitFile() {
		return nil
	}
	var out []check.Finding
	told := map[string]bool{}
	for _, file := range o.f.Kubeconfig().GetLoadingPrecedence() {
		other, err := clientcmd.LoadFromFile(file)
		if err != nil {
			continue
		}
		for _, u := range contexts {
			for _, one := range u.entries(raw, other) {
				if told[file+one.kind+one.name] || one.origin == "" || one.origin == file {
					continue
				}
				told[file+one.kind+one.name] = true
				out = append(out, warned(check.CodeContextName, fmt.Sprintf("%s and %s have different %ss %q", one.origin, file, one.kind, one.name),
					one.origin+" counts, and what "+file+" has is never used", fleet.Advice(one.fix+" --kubeconfig "+ui.ShellWord(file)+one.remark))...)
			}
		}
	}
	return out
}

// twin is an entry of which another file has a different one.
type twin struct {
	// kind is what it is, and origin the file that counts.
	kind, name, origin string
	// fix is the command that ends it, without the file, and remark what follows it.
	fix, remark string
}

// entries returns the entries of a context of which another file has different ones.
func (u used) entries(raw, other *clientcmdapi.Config) []twin {
	var out []twin
	word := ui.ShellWord(u.name)
	if there := other.Contexts[u.name]; there != nil && !reflect.DeepEqual(bare(*u.context), bare(*there)) {
		out = append(out, twin{"context", u.name, u.context.LocationOfOrigin, "kubectl config rename-context " + word + " " + ui.ShellWord(u.name+"-2"), ""})
	}
	const remark = "      if the first is right; otherwise rename it there"
	name := u.context.Cluster
	if have, there := raw.Clusters[name], other.Clusters[name]; have != nil && there != nil && have.Server != there.Server {
		out = append(out, twin{"cluster", name, have.LocationOfOrigin, "kubectl config delete-cluster " + ui.ShellWord(name), remark})
	}
	name = u.context.AuthInfo
	if have, there := raw.AuthInfos[name], other.AuthInfos[name]; have != nil && there != nil && !sameLogin(have, there) {
		out = append(out, twin{"user", name, have.LocationOfOrigin, "kubectl config delete-user " + ui.ShellWord(name), remark})
	}
	return out
}

// bare returns what a context says, without where it says it.
func bare(c clientcmdapi.Context) [3]string { return [3]string{c.Cluster, c.AuthInfo, c.Namespace} }

// sameLogin reports whether two users log in alike. Paths are relative to the files and not
// compared.
func sameLogin(a, b *clientcmdapi.AuthInfo) bool {
	return a.Token == b.Token && a.Username == b.Username && a.Impersonate == b.Impersonate && reflect.DeepEqual(a.Exec, b.Exec) &&
		string(a.ClientCertificateData) == string(b.ClientCertificateData)
}
