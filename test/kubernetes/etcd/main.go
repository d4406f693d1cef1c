// SPDX-License-Identifier: Apache-2.0

// Command etcd is etcd's own server main, built from its Go module because
// "go install" refuses modules with replace directives.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
