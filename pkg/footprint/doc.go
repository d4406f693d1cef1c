// SPDX-License-Identifier: Apache-2.0

// Package footprint gives memory back that a process has used and no longer needs.
//
// A program that starts runs through most of its code and tables once; the system
// keeps these pages mapped, for the hub some 30 MiB, though at rest it reads a small
// part of them. What is given back is mapped again, a few microseconds a time, when
// it is needed after all.
package footprint
