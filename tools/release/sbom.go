// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbomSuffix follows the name of an archive in that of its bill of materials.
const sbomSuffix = ".cdx.json"

// bill returns the bill of materials of an archive in the form of CycloneDX: the modules
// that the Go linker wrote into its programs, so it lists what was linked and nothing else.
// It has neither a time nor a serial number: the same sources give the same bytes.
func bill(version string, p platform, files []packed) ([]byte, error) {
	modules := map[string]*debug.Module{}
	goVersion := ""
	for _, f := range files {
		if !f.Executable {
			continue
		}
		info, err := buildinfo.Read(bytes.NewReader(f.Data))
		if err != nil {
			return nil, fmt.Errorf("reading the modules of %s: %w", f.Name, err)
		}
		goVersion = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[moduleURL(m)] = m
		}
	}
	var parts []cyclonedx.Component
	for _, address := range slices.Sorted(maps.Keys(modules)) {
		m := modules[address]
		parts = append(parts, cyclonedx.Component{
			BOMRef: address, Type: cyclonedx.ComponentTypeLibrary,
			Name: m.Path, Version: m.Version, PackageURL: address,
		})
	}
	b := cyclonedx.NewBOM()
	b.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: p.archiveName(), Type: cyclonedx.ComponentTypeApplication,
		Name: p.archiveName(), Version: version,
		Properties: &[]cyclonedx.Property{{Name: "go.version", Value: goVersion}},
	}}
	b.Components = &parts
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(b); err != nil {
		return nil, fmt.Errorf("writing the bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// moduleURL returns the package URL by which scanners know a Go module.
func moduleURL(m *debug.Module) string {
	return "pkg:golang/" + m.Path + "@" + m.Version
}
