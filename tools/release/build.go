// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// pluginPackage is the plugin, the first program in the archives.
	pluginPackage = "./plugins/kubectl-ocm"
	// pluginName is the name of the executable, by which kubectl finds the plugin.
	pluginName = "kubectl-ocm"
	// versionVariable is stamped with the version of the release.
	versionVariable = "github.com/kubectl-ocm/kubectl-ocm/internal/version.stamped"
	// checksumsName is the file of checksums, as "sha256sum -c" reads it.
	checksumsName = "checksums.txt"
)

// platform is an operating system and an architecture, by their Go names.
type platform struct {
	OS, Arch string
}

// beside are the programs that the archives for Linux have beside the plugin: its command
// "dev up" runs them.
var beside = []string{"./controllers/ocm-hub", "./controllers/ocm-agent"}

// allPlatforms are the platforms of a release.
var allPlatforms = []string{
	"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
}

// parsePlatforms parses a comma-separated list.
func parsePlatforms(list string) ([]platform, error) {
	var platforms []platform
	for _, name := range strings.Split(list, ",") {
		if !slices.Contains(allPlatforms, name) {
			return nil, fmt.Errorf("%q is none of %s", name, strings.Join(allPlatforms, ", "))
		}
		system, arch, _ := strings.Cut(name, "/")
		p := platform{system, arch}
		if slices.Contains(platforms, p) {
			return nil, fmt.Errorf("%q is given twice", name)
		}
		platforms = append(platforms, p)
	}
	return platforms, nil
}

// executable returns the name of the plugin inside the archive.
func (p platform) executable() string {
	if p.OS == "windows" {
		return pluginName + ".exe"
	}
	return pluginName
}

// archiveName returns the file name of the platform's archive.
func (p platform) archiveName() string {
	name := pluginName + "_" + p.OS + "_" + p.Arch
	if p.OS == "windows" {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// asset is one archive of a release.
type asset struct {
	platform platform
	// sha256 is the checksum in lower-case hexadecimal digits, sbomSHA256 that of the
	// archive's bill of materials.
	sha256, sbomSHA256 string
}

// release builds everything and prints each written file.
func release(ctx context.Context, c config, stdout io.Writer) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return fmt.Errorf("making the output folder: %w", err)
	}
	var assets []asset
	for _, p := range c.Platforms {
		data, sbom, err := buildArchive(ctx, c.Version, p)
		if err != nil {
			return fmt.Errorf("building for %s/%s: %w", p.OS, p.Arch, err)
		}
		file := filepath.Join(c.Out, p.archiveName())
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return fmt.Errorf("writing archive: %w", err)
		}
		if err := os.WriteFile(file+sbomSuffix, sbom, 0o644); err != nil {
			return fmt.Errorf("writing bill of materials: %w", err)
		}
		assets = append(assets, asset{p, hexSum(data), hexSum(sbom)})
		fmt.Fprintf(stdout, "%s\t%.1f MB\n%s\n", file, float64(len(data))/1e6, file+sbomSuffix)
	}
	file := filepath.Join(c.Out, checksumsName)
	if err := os.WriteFile(file, checksums(assets), 0o644); err != nil {
		return fmt.Errorf("writing checksums: %w", err)
	}
	fmt.Fprintln(stdout, file)
	if err := sign(ctx, c.Key, file); err != nil {
		return err
	}
	if c.Key != "" {
		fmt.Fprintln(stdout, file+signatureSuffix)
	}
	if err := writeManifest(c, assets); err != nil {
		return err
	}
	fmt.Fprintln(stdout, c.Manifest)
	return nil
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// checksums returns the checksum file of the archives and their bills of materials, sorted
// by name.
func checksums(assets []asset) []byte {
	var lines []string
	for _, a := range assets {
		lines = append(lines, a.sha256+"  "+a.platform.archiveName()+"\n",
			a.sbomSHA256+"  "+a.platform.archiveName()+sbomSuffix+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return []byte(strings.Join(lines, ""))
}

// buildArchive compiles the programs for a platform and packs them with the licence and the
// README. It returns the archive and its bill of materials.
func buildArchive(ctx context.Context, version string, p platform) (archive, sbom []byte, err error) {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, nil, fmt.Errorf("making a work folder: %w", err)
	}
	defer os.RemoveAll(dir)
	programs := map[string]string{p.executable(): pluginPackage}
	if p.OS == "linux" {
		for _, pkg := range beside {
			programs[path.Base(pkg)] = pkg
		}
	}
	files := []packed{{Name: "LICENSE", Source: "LICENSE"}, {Name: "README.md", Source: "README.md"}}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		program := filepath.Join(dir, name)
		if err := compile(ctx, version, p, programs[name], program); err != nil {
			return nil, nil, err
		}
		files = append(files, packed{Name: name, Source: program, Executable: true})
	}
	for i := range files {
		if files[i].Data, err = os.ReadFile(files[i].Source); err != nil {
			return nil, nil, fmt.Errorf("reading what to pack: %w", err)
		}
	}
	if sbom, err = bill(version, p, files); err != nil {
		return nil, nil, err
	}
	if p.OS == "windows" {
		archive, err = zipped(files)
	} else {
		archive, err = tarred(files)
	}
	return archive, sbom, err
}

// compile builds a program so that the same sources give the same bytes in every folder
// and on every machine.
func compile(ctx context.Context, version string, p platform, pkg, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X "+versionVariable+"="+version, "-o", out, pkg)
	cmd.Env = append(os.Environ(), "GOOS="+p.OS, "GOARCH="+p.Arch,
		"CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off", "GOEXPERIMENT=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling %s: %w\n%s", pkg, err, text)
	}
	return nil
}
