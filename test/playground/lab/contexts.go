// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// extension of the kubeconfig entries that belong to a lab; its value is an owner.
const extension = "kubectl-ocm/playground"

// owner tells which lab a kubeconfig entry belongs to.
type owner struct {
	Folder string `json:"folder"`
}

// Taken is the error for a kubeconfig entry of a lab's name that belongs to somebody else.
type Taken struct {
	// Name is that of the entry.
	Name string
}

// Error names the entry.
func (e *Taken) Error() string {
	return fmt.Sprintf("the kubeconfig has an entry %q that does not belong to this playground", e.Name)
}

// owns reports whether the extensions of an entry name the folder of this lab.
func (l *lab) owns(extensions map[string]runtime.Object) bool {
	unknown, ok := extensions[extension].(*runtime.Unknown)
	var o owner
	return ok && json.Unmarshal(unknown.Raw, &o) == nil && o.Folder == l.dir
}

// free returns an error if an entry of one of the lab's names belongs to somebody else.
func (l *lab) free(config *clientcmdapi.Config) error {
	for _, cluster := range l.clusters() {
		name := Context(l.name, cluster)
		context, server, user := config.Contexts[name], config.Clusters[name], config.AuthInfos[name]
		if context != nil && !l.owns(context.Extensions) || server != nil && !l.owns(server.Extensions) || user != nil && !l.owns(user.Extensions) {
			return &Taken{Name: name}
		}
	}
	return nil
}

// addContexts writes an entry for each cluster, and makes the hub the current context if
// use is set. Files that are up to date are not written.
func (l *lab) addContexts(access clientcmd.ConfigAccess, use bool) error {
	config, err := access.GetStartingConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := l.free(config); err != nil {
		return err
	}
	if hub := Context(l.name, Hub); use && config.CurrentContext != hub {
		l.record.Before, config.CurrentContext = config.CurrentContext, hub
	}
	if err := l.remember(access); err != nil {
		return err
	}
	for _, cluster := range l.clusters() {
		if err := l.addContext(config, cluster); err != nil {
			return err
		}
	}
	if err := clientcmd.ModifyConfig(access, *config, false); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// remember records the files that are about to get entries.
func (l *lab) remember(access clientcmd.ConfigAccess) error {
	for _, file := range append(access.GetLoadingPrecedence(), access.GetDefaultFilename()) {
		full, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		if !slices.Contains(l.record.Kubeconfigs, full) {
			l.record.Kubeconfigs = append(l.record.Kubeconfigs, full)
		}
	}
	return l.write()
}

func (l *lab) addContext(config *clientcmdapi.Config, cluster string) error {
	one, err := clientcmd.LoadFromFile(l.adminFile(cluster))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of %s: %w", cluster, err)
	}
	mark, err := json.Marshal(owner{Folder: l.dir})
	if err != nil {
		return fmt.Errorf("encoding an entry of the kubeconfig: %w", err)
	}
	extensions := map[string]runtime.Object{extension: &runtime.Unknown{Raw: mark, ContentType: runtime.ContentTypeJSON}}
	current := one.Contexts[one.CurrentContext]
	server, user, name := one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo], Context(l.name, cluster)
	server.Extensions, user.Extensions = extensions, extensions
	context := &clientcmdapi.Context{Cluster: name, AuthInfo: name, Extensions: extensions}
	server.LocationOfOrigin, user.LocationOfOrigin = "", ""
	if old := config.Contexts[name]; old != nil {
		context.Namespace, context.LocationOfOrigin = old.Namespace, old.LocationOfOrigin
	}
	if old := config.Clusters[name]; old != nil {
		server.LocationOfOrigin = old.LocationOfOrigin
	}
	if old := config.AuthInfos[name]; old != nil {
		user.LocationOfOrigin = old.LocationOfOrigin
	}
	config.Contexts[name], config.Clusters[name], config.AuthInfos[name] = context, server, user
	return nil
}

// removeContexts removes the lab's entries from all files that may have some. A current
// context of the lab becomes the one before it.
func (l *lab) removeContexts() error {
	var failed []error
	for _, file := range l.record.Kubeconfigs {
		if err := l.removeFrom(file); err != nil {
			failed = append(failed, fmt.Errorf("removing the playground's contexts from %s: %w", file, err))
		}
	}
	return errors.Join(failed...)
}

func (l *lab) removeFrom(file string) error {
	access := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
	config, err := access.GetStartingConfig()
	if err != nil {
		return err
	}
	changed := false
	for _, cluster := range l.clusters() {
		name := Context(l.name, cluster)
		if c := config.Contexts[name]; c != nil && l.owns(c.Extensions) {
			delete(config.Contexts, name)
			changed = true
		}
		if c := config.Clusters[name]; c != nil && l.owns(c.Extensions) {
			delete(config.Clusters, name)
			changed = true
		}
		if u := config.AuthInfos[name]; u != nil && l.owns(u.Extensions) {
			delete(config.AuthInfos, name)
			changed = true
		}
		// The entry may be in another of the user's files: then the current context
		// would name nothing.
		if config.CurrentContext == name && config.Contexts[name] == nil {
			config.CurrentContext = l.record.Before
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return clientcmd.ModifyConfig(access, *config, false)
}
