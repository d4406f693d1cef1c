// SPDX-License-Identifier: Apache-2.0

// Command release builds what users install: an archive of the plugin for each platform,
// the checksums of the archives, and the krew manifest that names them. The archives for
// Linux also have the programs of hub and agent, for "kubectl ocm dev up".
//
// It reads the module in the current folder, LICENSE and README.md, and writes
// <out>/kubectl-ocm_<os>_<arch>.tar.gz (.zip for Windows), <out>/checksums.txt and the
// manifest. The same sources and the same Go version give the same bytes on every machine
// and in every folder: file times are fixed, archives contain only regular files, and
// nothing of the machine is recorded.
//
// The manifest is checked by the rules of krew's own validator and of its default index
// before it is written, so that this program never writes a manifest that krew would
// reject. The folder krew-index/ around it is a complete custom index: "kubectl krew
// index add" accepts it once it is published as a git repository of its own.
//
// Beside each archive lies its bill of materials (CycloneDX): the modules that are linked
// into its programs. The checksums name both, and -key signs the checksums by an SSH key.
// Without a key it says that they are unsigned.
//
// It uploads nothing and needs no network once the modules are downloaded.
//
// Usage, as "make release" does it:
//
//	go run ./tools/release -version v1.2.3 [-out DIR] [-manifest FILE] [-platform os/arch,...] [-key FILE]
package main
