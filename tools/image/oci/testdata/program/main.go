// SPDX-License-Identifier: Apache-2.0

// Command program is the program that the tests of this package put into an image.
package main

import "os"

func main() {
	if len(os.Args) > 1 {
		os.Exit(1)
	}
}
