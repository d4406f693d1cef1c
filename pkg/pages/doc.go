// SPDX-License-Identifier: Apache-2.0

// Package pages gives back the memory that only the start of a process needed.
//
// Two thirds of what a small Go program holds are pages of its own file: code
// and tables that package initialization ran through once. The kernel keeps them
// mapped, and counts them as in use, until memory is short. Release tells it
// that they are not, and takes them out of the process; what the process runs
// through again comes back from the page cache, at some microseconds a page.
//
// Reads /proc/self/smaps and writes nothing. On other systems than Linux it does
// nothing.
package pages
