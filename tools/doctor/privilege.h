/* SPDX-License-Identifier: BSD-2-Clause */
/* The capabilities of this process. */
#ifndef NATRA_DOCTOR_PRIVILEGE_H
#define NATRA_DOCTOR_PRIVILEGE_H

#include <stdint.h>

/* Returns a bit for each capability that natra needs and this process lacks. */
uint64_t privilege_lacks(void);
/* Returns their names, which the caller frees. */
char *privilege_names(uint64_t lacks);

#endif
