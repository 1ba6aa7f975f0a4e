/* SPDX-License-Identifier: BSD-2-Clause */
/* cmocka with what its header needs before it. */
#ifndef TH_CM_H
#define TH_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka's own header after the four above */
#include <cmocka.h>

#define TH_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
