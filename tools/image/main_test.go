// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrongCommandLinesAreRefusedBeforeAnythingIsBuilt(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no image":                 {[]string{"-version", "v1"}, "no image given"},
		"no version":               {[]string{"a=./a"}, "no version given"},
		"the tag latest":           {[]string{"-version", "latest", "a=./a"}, "version latest is not allowed"},
		"a version that is no tag": {[]string{"-version", "v1/2", "a=./a"}, `version "v1/2" is not a valid image tag`},
		"an image without package": {[]string{"-version", "v1", "a"}, `image "a" is not of the form NAME=PACKAGE`},
		"an empty package":         {[]string{"-version", "v1", "a="}, `image a: package "" is not a Go package`},
		"an option as package":     {[]string{"-version", "v1", "a=-toolexec=x"}, "is not a Go package"},
		"a name with capitals":     {[]string{"-version", "v1", "A=./a"}, `image name "A"`},
		"one image twice":          {[]string{"-version", "v1", "a=./a", "a=./b"}, `image "a" is given twice`},
		"a foreign system": {
			[]string{"-version", "v1", "-platform", "darwin/arm64", "a=./a"},
			`platform "darwin/arm64" is not of the form linux/ARCHITECTURE`,
		},
		"one platform twice": {
			[]string{"-version", "v1", "-platform", "linux/amd64,linux/amd64", "a=./a"},
			"is given twice",
		},
		"two platforms as files": {
			[]string{"-version", "v1", "-rootfs", "x", "a=./a"},
			"-rootfs takes one image and one platform",
		},
		"an unknown flag": {[]string{"-push"}, "flag provided but not defined: -push"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			var stdout, stderr bytes.Buffer
			code := run(context.Background(), append([]string{"-out", out}, tc.args...), &stdout, &stderr)
			require.Equal(t, exitUsage, code)
			require.Contains(t, stderr.String(), tc.want)
			require.Contains(t, stderr.String(), "run with -h for help")
			require.Empty(t, stdout.String())
			require.NoDirExists(t, out)
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(context.Background(), []string{"-h"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "NAME=PACKAGE is an image")
}

func TestEachArchiveIsOneLine(t *testing.T) {
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	args := []string{"-version", "v0.0.1", "-out", out, "-platform", "linux/amd64", "one=./oci/testdata/program", "two=./oci/testdata/program"}
	require.Equal(t, exitOK, run(context.Background(), args, &stdout, &stderr), stderr.String())
	require.Regexp(t, `^ghcr.io/kubectl-ocm/one:v0.0.1\t`+regexp.QuoteMeta(out)+`/one.tar\tsha256:[0-9a-f]{64}\t[0-9.]+ MiB
ghcr.io/kubectl-ocm/two:v0.0.1\t`+regexp.QuoteMeta(out)+`/two.tar\tsha256:[0-9a-f]{64}\t[0-9.]+ MiB
$`, stdout.String())
}

func TestFailedBuildNamesTheImage(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), []string{"-version", "v1", "-out", t.TempDir(), "gone=./absent"}, &stdout, &stderr)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr.String(), "image: building image gone: compiling ./absent for linux/amd64")
}

// The Containerfile must build the images that this command builds.
func TestContainerfileFitsTheImages(t *testing.T) {
	body, err := os.ReadFile("../../Containerfile")
	require.NoError(t, err)
	for name, pkg := range map[string]string{
		"ocm-hub":                "./controllers/ocm-hub",
		"ocm-agent":              "./controllers/ocm-agent",
		"webdemo":                "./examples/webdemo",
		"helloworld-addon":       "./examples/helloworld-addon",
		"managed-serviceaccount": "./controllers/managed-serviceaccount",
	} {
		require.Regexp(t, `(?m)^FROM build AS build-`+name+`\nRUN .* `+name+`=`+regexp.QuoteMeta(pkg)+`$`, string(body))
		require.Regexp(t, `(?m)^FROM scratch AS `+name+`\nCOPY --from=build-`+name+` /rootfs /\nUSER 65532:65532\nENTRYPOINT \["/`+name+`"\]$`, string(body))
	}
}
