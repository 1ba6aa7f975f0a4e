/* SPDX-License-Identifier: BSD-2-Clause */
#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int failure_set(struct failure *failure, enum cni_code code, const char *format,
		...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(failure->msg, sizeof(failure->msg), format, args);
	va_end(args);
	failure->code = code;
	failure->details[0] = failure->annotation[0] = '\0';
	return (int)code;
}

void failure_add_details(struct failure *failure, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(failure->details, sizeof(failure->details), format,
			args);
	va_end(args);
}

static enum cni_code code_of(const struct natra *n, int r,
			     enum cni_code otherwise)
{
	switch (natra_error_code(n)) {
	case NATRA_CODE_LOCKED:
		return CNI_TRY_AGAIN;
	case NATRA_CODE_OTHER_QDISC:
	case NATRA_CODE_LEFTOVERS:
		return CNI_BUSY;
	default:
		break;
	}
	switch (-r) {
	case EAGAIN:
	case EINTR:
	case ENOMEM:
		return CNI_TRY_AGAIN;
	case EOPNOTSUPP:
		return CNI_NOT_SUPPORTED;
	case EBUSY:
		return CNI_BUSY;
	case EPERM:
	case EACCES:
		return CNI_NO_PERMISSION;
	case ESTALE:
		return CNI_UNKNOWN_STATE;
	case ENODEV:
		return CNI_NO_INTERFACE;
	default:
		return otherwise;
	}
}

int failure_of_natra(struct failure *failure, const struct natra *n, int r,
		     enum cni_code otherwise)
{
	const char *text = natra_error(n);

	(void)failure_set(failure, code_of(n, r, otherwise), "%s",
			  text[0] ? text : strerror(-r));
	if (natra_error_code(n) == NATRA_CODE_ANNOTATION)
		(void)snprintf(failure->annotation, sizeof(failure->annotation),
			       "%s", natra_error_about(n));
	return (int)failure->code;
}
