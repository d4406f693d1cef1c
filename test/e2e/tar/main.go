// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command tar is the only program of an image for tests, named as "kubectl cp" expects it:
//
//	tar cf - FILE          writes an archive of a file to its output
//	tar -xmf - -C FOLDER   reads an archive from its input, and writes its files
//	tar repeat             prints, over and over, the last line that it has read
//	tar terminal           prints the size of its terminal, again with each change, until it reads
//	                       a line; the exit code is 5
//
// It knows no more flags than kubectl gives it, and trusts its input: nothing but tests runs it.
package main

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

const (
	// again is the time between two prints of "repeat".
	again = 100 * time.Millisecond
	// code is how "terminal" ends.
	code = 5
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		// "kubectl cp" waits for good if a program ends before it has read its input.
		_, _ = io.Copy(io.Discard, os.Stdin)
		log.Fatal(err)
	}
}

func run(args []string) error {
	switch command := strings.Join(args, " "); {
	case command == "repeat":
		return repeat()
	case command == "terminal":
		return terminal()
	case len(args) == 3 && strings.HasPrefix(command, "cf - "):
		return pack(args[2])
	case len(args) == 4 && strings.HasPrefix(command, "-xmf - -C "):
		return unpack(args[3])
	}
	return fmt.Errorf("there is no %q", args)
}

// pack writes an archive of a file under its whole name, as tar does.
func pack(file string) error {
	content, err := os.ReadFile(file) //nolint:gosec // that is what it is for
	if err != nil {
		return err
	}
	archive := tar.NewWriter(os.Stdout)
	if err := archive.WriteHeader(&tar.Header{Name: strings.TrimPrefix(file, "/"), Mode: 0o600, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = archive.Write(content)
	return errors.Join(err, archive.Close())
}

func unpack(folder string) error {
	archive := tar.NewReader(os.Stdin)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, head.Name), content, 0o600); err != nil { //nolint:gosec // that is what it is for
			return err
		}
	}
}

// lines sends the lines of the input until it ends.
func lines() <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		for read := bufio.NewScanner(os.Stdin); read.Scan(); {
			out <- read.Text()
		}
	}()
	return out
}

// repeat prints often, so that who attaches sees a line whenever they come.
func repeat() error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	input, last := lines(), "nothing yet"
	for {
		select {
		case line, more := <-input:
			if !more {
				input = nil
				continue
			}
			last = line
		case <-time.After(again):
			fmt.Println(last)
		case <-asked:
			return nil
		}
	}
}

// terminal catches changes before it looks, so that it misses none.
func terminal() error {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	input := lines()
	for {
		columns, rows, err := term.GetSize(int(os.Stdin.Fd()))
		if err != nil {
			return err
		}
		fmt.Println("size", rows, columns)
		select {
		case <-changed:
		case <-input:
			os.Exit(code)
		}
	}
}
