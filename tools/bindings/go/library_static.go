// SPDX-License-Identifier: BSD-2-Clause

//go:build cgo && natra_static

package natra

// Go compiles again for another set of files, but not for another line in the same file.
// The archive comes first, so the shared library, which pkg-config names, is not needed.

// #cgo LDFLAGS: -Wl,--as-needed -l:libnatra.a
// #cgo pkg-config: --static libnatra
import "C"
