/* SPDX-License-Identifier: BSD-2-Clause */
/* Includes cmocka.h after the headers that it needs. */
#ifndef TH_CM_H
#define TH_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define TH_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
