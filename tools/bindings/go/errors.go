// SPDX-License-Identifier: BSD-2-Clause

package natra

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Error is a call that failed. It is the errno for [errors.Is].
type Error struct {
	// Call is the name of the library's function, such as "attach".
	Call string
	// Errno says what is wrong, as natra/natra.h has it for each function.
	Errno syscall.Errno
	// Code tells apart what has the same Errno.
	Code Code
	// About names the setting, argument, class or annotation that is wrong or differs; "" if the
	// Code has none.
	About string
	// Text is one line that names the object, for people.
	Text string

	cause error
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the errno, and the context's error if that ended the call.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Errno}
	}
	return []error{e.Errno, e.cause}
}

// failed returns the error of a call whose result was -errno.
func failed(ctx context.Context, call string, errno syscall.Errno, code Code, about, text string) error {
	if text == "" {
		text = errno.Error()
	}
	e := &Error{Call: call, Errno: errno, Code: code, About: about, Text: text}
	if errno == syscall.ECANCELED {
		e.cause = ctx.Err()
	}
	return e
}

// ended returns the error of a call that was not begun, or nil.
func ended(ctx context.Context, call string) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return &Error{Call: call, Errno: syscall.ECANCELED, Text: err.Error(), cause: err}
}

// named is a text that goes to the library, and the name by which an error calls it.
type named struct{ name, text string }

// unfit says why neither a string of C nor one of JSON can hold a text, or "".
func unfit(text string) string {
	switch {
	case strings.ContainsRune(text, 0):
		return "has a NUL byte"
	case !utf8.ValidString(text):
		return "is not UTF-8"
	}
	return ""
}

// checkTexts refuses what is unfit.
func checkTexts(call string, texts ...named) error {
	for _, t := range texts {
		if why := unfit(t.text); why != "" {
			return badField(call, t.name, fmt.Sprintf("%q %s", t.text, why))
		}
	}
	return nil
}

// badField returns what the library would, of a value that it cannot be given.
func badField(call, name, why string) error {
	return &Error{Call: call, Errno: syscall.EINVAL, Code: CodeField, About: name, Text: name + ": " + why}
}

// Needs is the oldest version of libnatra and natractl that has all that this package
// calls.
const Needs = "0.1.0"

// checkVersion refuses a library or natractl that is older than Needs.
func checkVersion(call, what, version string) error {
	if !older(version, Needs) {
		return nil
	}
	return &Error{Call: call, Errno: syscall.EOPNOTSUPP, Text: fmt.Sprintf(
		"%s %s is older than this package, which needs %s", what, version, Needs)}
}

// older compares versions such as "0.1.0". What is no version counts as 0.
func older(a, b string) bool {
	var x, y [3]int
	fmt.Sscanf(a, "%d.%d.%d", &x[0], &x[1], &x[2])
	fmt.Sscanf(b, "%d.%d.%d", &y[0], &y[1], &y[2])
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}
