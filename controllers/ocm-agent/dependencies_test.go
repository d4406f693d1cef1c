// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDependenciesStaySmall keeps out packages that each pull the whole scheme of Kubernetes
// into the process, or make the linker keep every method. CEL imports text/template for a
// function that nothing here calls, so the linker can drop what would keep every method.
func TestDependenciesStaySmall(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	allowed := map[string]bool{
		"k8s.io/api/core/v1": true, "k8s.io/api/authentication/v1": true, "k8s.io/api/authorization/v1": true,
		"k8s.io/api/coordination/v1": true, "k8s.io/api/certificates/v1": true,
	}
	for dep := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		if strings.HasPrefix(dep, "k8s.io/api/") {
			require.True(t, allowed[dep], "%s is linked", dep)
		}
		for _, banned := range []string{
			"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/restmapper",
			"k8s.io/client-go/tools/record",
			"k8s.io/client-go/tools/leaderelection", "k8s.io/client-go/discovery", "k8s.io/client-go/tools/clientcmd/api/latest",
			"sigs.k8s.io/controller-runtime",
			"k8s.io/apiextensions-apiserver", "html/template", "github.com/spf13/cobra", "k8s.io/cli-runtime", "k8s.io/kubectl",
		} {
			require.False(t, dep == banned || strings.HasPrefix(dep, banned+"/"), "%s is linked", dep)
		}
	}
}
