// SPDX-License-Identifier: Apache-2.0

package join

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/join"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// maxFile is the maximum size of a file, in bytes.
const maxFile = 1 << 20

// readFiles reads the files that the flags name into out.
func (o *Options) readFiles(out *join.Options) error {
	var err error
	if o.CAFile != "" {
		if out.CA, err = o.read("--ca-file", o.CAFile); err != nil {
			return err
		}
		if !strings.Contains(string(out.CA), "-----BEGIN CERTIFICATE-----") {
			return options.Usage("--ca-file "+o.CAFile+" holds no certificate", "give a PEM file with the hub's CA")
		}
	}
	if o.ProxyCAFile != "" {
		if out.ProxyCA, err = o.read("--proxy-ca-file", o.ProxyCAFile); err != nil {
			return err
		}
	}
	out.Token = strings.TrimSpace(o.Token)
	if o.TokenFile != "" {
		raw, err := o.read("--token-file", o.TokenFile)
		if err != nil {
			return err
		}
		out.Token = strings.TrimSpace(string(raw))
	}
	if out.Token == "" && (o.Token != "" || o.TokenFile != "") {
		return options.Usage("the token is empty", "take one from: kubectl ocm hub token --print token")
	}
	if strings.ContainsAny(out.Token, " \t\r\n") {
		return options.Usage("the token contains whitespace", "give the token alone: kubectl ocm hub token --print token")
	}
	if o.ManagedKubeconfig != "" {
		if out.ManagedKubeconfig, err = o.readManaged(); err != nil {
			return err
		}
	}
	if o.Bundle != "" {
		return o.readBundle(out)
	}
	return nil
}

// readManaged reads the current context of the managed cluster's kubeconfig, with the content of
// the files that it names.
func (o *Options) readManaged() ([]byte, error) {
	raw, err := o.read("--managed-cluster-kubeconfig", o.ManagedKubeconfig)
	if err != nil {
		return nil, err
	}
	wrong := func(cause string) error {
		return fleet.Misuse("--managed-cluster-kubeconfig "+o.ManagedKubeconfig+" cannot be used", cause,
			fleet.Advice("kubectl config view --minify --flatten prints one that can"))
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, wrong("it is not a kubeconfig") // the parser's message may quote a credential
	}
	for _, c := range config.Clusters {
		c.LocationOfOrigin = o.ManagedKubeconfig
	}
	for _, user := range config.AuthInfos {
		user.LocationOfOrigin = o.ManagedKubeconfig
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, wrong(err.Error())
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, wrong(err.Error())
	}
	return clientcmd.Write(*config)
}

// readBundle reads address, CA and token from the file in Bundle.
func (o *Options) readBundle(out *join.Options) error {
	raw, err := o.read("--bundle", o.Bundle)
	if err != nil {
		return err
	}
	wrong := options.Usage("--bundle "+o.Bundle+" is not a bundle", "take one from: kubectl ocm hub token --print bundle")
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil {
		return wrong
	}
	c, err := kubeconfig.Parse(decoded)
	if err != nil || c.Token == "" {
		return wrong
	}
	out.Token = c.Token
	if out.Server == "" {
		out.Server = c.Server
	}
	if len(out.CA) == 0 {
		out.CA = c.CAData
	}
	return nil
}

// read reads a file, or standard input for "-".
func (o *Options) read(flag, path string) ([]byte, error) {
	var in io.Reader = o.f.UI.Streams.In
	if path != "-" {
		file, err := os.Open(path) //nolint:gosec // the user named it
		if err != nil {
			return nil, unreadable(flag, path, err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, unreadable(flag, path, err)
	}
	if len(raw) > maxFile {
		return nil, options.Usage(fmt.Sprintf("%s %s is larger than %d bytes", flag, path, maxFile), "give the right file")
	}
	return raw, nil
}

func unreadable(flag, path string, err error) error {
	return &fleet.Error{
		Kind:    fleet.Usage,
		Message: flag + " " + path + " cannot be read",
		Cause:   err.Error(),
		Fix:     fleet.Advice("name a file that exists, or - for standard input"),
	}
}
