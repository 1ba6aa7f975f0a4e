# SPDX-License-Identifier: BSD-2-Clause
# Completion of natractl(8) for bash.
_natractl()
{
	mapfile -t COMPREPLY < <("$1" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	case ${COMPREPLY[0]-} in
	:dir) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	:file) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	esac
}

complete -F _natractl natractl
