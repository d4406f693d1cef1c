// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// maxFile bounds one file that is read, in bytes: more than a work can hold in any
// form.
const maxFile = 8 << 20

// Text reads the file that the value of a flag names, - for standard input.
func Text(u *ui.UI, flag, name string) (manifest.Source, error) {
	switch {
	case name == "-":
		return bounded(u.Streams.In, "standard input")
	case strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"):
		return manifest.Source{}, Usage(flag+" "+name+": addresses are not read", "fetch it yourself and give it by "+flag+" -")
	}
	file, err := os.Open(name) //nolint:gosec // the person named it
	if err != nil {
		return manifest.Source{}, &fleet.Error{Kind: fleet.Usage, Message: flag + " " + name + " cannot be read", Cause: err.Error(),
			Fix: fleet.Advice("name a file that exists")}
	}
	defer func() { _ = file.Close() }()
	return bounded(file, name)
}

func bounded(in io.Reader, name string) (manifest.Source, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return manifest.Source{}, &fleet.Error{Kind: fleet.Usage, Message: name + " cannot be read", Cause: err.Error(),
			Fix: fleet.Advice("name a file that can be read")}
	}
	if len(data) > maxFile {
		return manifest.Source{}, Usage(fmt.Sprintf("%s is larger than %d bytes", name, maxFile), "give manifests")
	}
	return manifest.Source{Name: name, Data: data}, nil
}
