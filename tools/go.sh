# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# What tools/install-deps and tests/kube/build share.

# Prints a Go that can fetch the toolchain that a module asks for, or nothing.
find_go()
{
	local go

	for go in "$(command -v go)" /usr/local/go/bin/go /usr/lib/go-*/bin/go; do
		if [ -x "$go" ] && GOTOOLCHAIN=local "$go" version |
			grep -qE ' go1\.(2[1-9]|[3-9][0-9])'; then
			echo "$go"
			return
		fi
	done
}
