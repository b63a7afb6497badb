// Descriptor duplication on the other Unix systems, which have no dup3.

//go:build unix && !linux

package main

import "golang.org/x/sys/unix"

func duplicateOnto(from, to int) error { return unix.Dup2(from, to) }
