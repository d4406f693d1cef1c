// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// checksumsFile names the programs that playgrounds may download.
const checksumsFile = "../playground/supply/checksums.txt"

// publish writes the programs of a control plane into a folder, compressed, under the names under
// which playgrounds download them. A program that is not what the checksums name is built again: it may
// have been built by another version of this program. If that does not help, publish fails, and says
// which line is missing.
func (j job) publish(ctx context.Context, out io.Writer, folder string) error {
	known, err := os.ReadFile(checksumsFile)
	if err != nil {
		return fmt.Errorf("reading the checksums: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var unknown []string
	for _, p := range j.wanted {
		if p.node {
			continue
		}
		b, err := j.readBuilt(string(known), p.name)
		if err == nil && !b.named && strings.Contains(string(known), " "+j.platform()+"/"+p.name+"\n") {
			fmt.Fprintf(out, "%s is not what the checksums name: building it again\n", p.name)
			if err = j.build(ctx, p); err == nil {
				b, err = j.readBuilt(string(known), p.name)
			}
		}
		if err != nil {
			return fmt.Errorf("publishing %s: %w", p.name, err)
		}
		if !b.named {
			unknown = append(unknown, b.line)
			continue
		}
		file := filepath.Join(folder, p.name+"-"+j.platform()+".gz")
		if err := compress(file, b.data); err != nil {
			return fmt.Errorf("publishing %s: %w", p.name, err)
		}
		fmt.Fprintln(out, "published", file)
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%s does not name what was built for %s:\n%s", checksumsFile, j.platform(), strings.Join(unknown, ""))
	}
	return nil
}

// built is a program, with the line that the checksums should have for it, and whether they do.
type built struct {
	data  []byte
	line  string
	named bool
}

func (j job) readBuilt(known, name string) (built, error) {
	data, err := os.ReadFile(filepath.Join(j.dir, name))
	line := lineOf(data, j.platform()+"/"+name)
	return built{data: data, line: line, named: strings.Contains(known, line)}, err
}

// lineOf returns the line of the checksums for a program.
func lineOf(data []byte, name string) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%s %d %s\n", hex.EncodeToString(sum[:]), len(data), name)
}

func compress(path string, data []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	packed := gzip.NewWriter(file)
	if _, err := packed.Write(data); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return file.Close()
}
