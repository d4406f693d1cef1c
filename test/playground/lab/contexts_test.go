// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// newLab returns a lab with the kubeconfig files of its clusters, which do not run.
func newLab(t *testing.T, name string) *lab {
	t.Helper()
	l, unlock, err := open(t.TempDir(), name, true)
	require.NoError(t, err)
	t.Cleanup(unlock)
	l.record.Clusters = 1
	for _, cluster := range l.clusters() {
		require.NoError(t, os.MkdirAll(l.folder(cluster), 0o700))
		config := clientcmdapi.NewConfig()
		config.Clusters["a"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
		config.AuthInfos["a"] = &clientcmdapi.AuthInfo{Token: cluster}
		config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
		config.CurrentContext = "a"
		require.NoError(t, clientcmd.WriteToFile(*config, l.adminFile(cluster)))
	}
	return l
}

// files writes kubeconfig files and returns access to them, as with a list in KUBECONFIG.
func files(t *testing.T, configs ...*clientcmdapi.Config) *clientcmd.ClientConfigLoadingRules {
	t.Helper()
	rules := &clientcmd.ClientConfigLoadingRules{}
	for i, config := range configs {
		path := filepath.Join(t.TempDir(), string(rune('a'+i)))
		require.NoError(t, clientcmd.WriteToFile(*config, path))
		rules.Precedence = append(rules.Precedence, path)
	}
	return rules
}

func somebodies(context, current string) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Contexts[context] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	config.CurrentContext = current
	return config
}

func TestContextsComeAndGoWithoutATrace(t *testing.T) {
	for name, use := range map[string]bool{"used": true, "unused": false} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "lab")
			access := files(t, somebodies("work", "work"), somebodies("home", ""))
			before, err := access.GetStartingConfig()
			require.NoError(t, err)
			for range 2 {
				require.NoError(t, l.addContexts(access, use))
			}
			config, err := access.GetStartingConfig()
			require.NoError(t, err)
			require.Len(t, config.Contexts, 4)
			require.Equal(t, "cluster1", config.AuthInfos["ocm-lab-cluster1"].Token)
			require.Equal(t, map[bool]string{true: "ocm-lab-hub", false: "work"}[use], config.CurrentContext)

			require.NoError(t, l.read(), "the record names the files")
			require.NoError(t, l.removeContexts())
			after, err := access.GetStartingConfig()
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

// The namespace that a user chose for a context stays.
func TestASecondRunKeepsTheNamespaceOfAContext(t *testing.T) {
	l := newLab(t, "lab")
	access := files(t, somebodies("work", "work"))
	require.NoError(t, l.addContexts(access, false))
	config, err := access.GetStartingConfig()
	require.NoError(t, err)
	config.Contexts["ocm-lab-hub"].Namespace = "apps"
	require.NoError(t, clientcmd.ModifyConfig(access, *config, false))
	require.NoError(t, l.addContexts(access, false))
	config, err = access.GetStartingConfig()
	require.NoError(t, err)
	require.Equal(t, "apps", config.Contexts["ocm-lab-hub"].Namespace)
}

// Entries without the extension, or with that of another folder, belong to somebody else.
func TestEntriesOfOthersAreNeitherReplacedNorRemoved(t *testing.T) {
	l, other := newLab(t, "lab"), newLab(t, "lab")
	access := files(t, somebodies("work", "work"))
	require.NoError(t, other.addContexts(access, false))
	var taken *Taken
	require.ErrorAs(t, l.addContexts(access, false), &taken)

	for _, config := range []*clientcmdapi.Config{
		somebodies("ocm-lab-hub", ""),
		{Clusters: map[string]*clientcmdapi.Cluster{"ocm-lab-cluster1": {Server: "https://a"}}},
		{AuthInfos: map[string]*clientcmdapi.AuthInfo{"ocm-lab-hub": {Token: "a"}}},
	} {
		access := files(t, config)
		require.ErrorAs(t, l.addContexts(access, true), &taken)
		l.record.Kubeconfigs = access.Precedence
		before, err := os.ReadFile(access.Precedence[0])
		require.NoError(t, err)
		require.NoError(t, l.removeContexts())
		after, err := os.ReadFile(access.Precedence[0])
		require.NoError(t, err)
		require.Equal(t, string(before), string(after))
	}
}
