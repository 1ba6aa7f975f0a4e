// SPDX-License-Identifier: BSD-2-Clause

//go:build !cgo

package natra

// openLibrary opens libnatra; nil: it is not linked.
var openLibrary func(Options) (backend, error)
