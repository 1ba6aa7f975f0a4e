/* SPDX-License-Identifier: BSD-2-Clause */
/* Versions of the CNI specification that natra speaks. */
#pragma once

enum version {
	VERSION_0_3_0,
	VERSION_0_3_1,
	VERSION_0_4_0,
	VERSION_1_0_0,
	VERSION_1_1_0,
	VERSION_MAX
};

#define VERSION_NEWEST VERSION_1_1_0

const char *version_name(enum version version);
/* 0; -EINVAL: natra does not speak it. */
int version_parse(const char *text, enum version *ret_version);
