#compdef natractl
# SPDX-License-Identifier: BSD-2-Clause
# Completion of natractl(8) for zsh.
local -a found
found=("${(@f)$("${words[1]}" complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
case ${found[1]} in
:dir) _files -/ ;;
:file) _files ;;
'') return 1 ;;
*) compadd -a found ;;
esac
