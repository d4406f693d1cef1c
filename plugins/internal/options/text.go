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

// maxFile is the maximum size of a file in bytes, larger than any work can be.
const maxFile = 8 << 20

// Text reads the file that a flag names; "-" is standard input. URLs are refused.
func Text(u *ui.UI, flag, name string) (manifest.Source, error) {
	switch {
	case name == "-":
		return readBounded(u.Streams.In, "standard input")
	case strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"):
		return manifest.Source{}, Usage(flag+" "+name+": URLs are not read", "fetch it yourself and pipe it to "+flag+" -")
	}
	file, err := os.Open(name) //nolint:gosec // the user named it
	if err != nil {
		return manifest.Source{}, &fleet.Error{Kind: fleet.Usage, Message: flag + " " + name + " cannot be read", Cause: err.Error(),
			Fix: fleet.Advice("name a file that exists")}
	}
	defer func() { _ = file.Close() }()
	return readBounded(file, name)
}

func readBounded(in io.Reader, name string) (manifest.Source, error) {
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
