// SPDX-License-Identifier: BSD-2-Clause

//go:build cgo && !natra_static

package natra

// Go compiles again for another set of files, but not for another line in the same file.

// #cgo pkg-config: libnatra
import "C"
