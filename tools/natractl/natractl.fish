# SPDX-License-Identifier: BSD-2-Clause
# Completion of natractl(8) for fish.
function __natractl_complete
	set -l words (commandline -opc)
	set -l found ($words[1] complete $words[2..] (commandline -ct) 2>/dev/null)
	switch "$found[1]"
		case :dir
			__fish_complete_directories (commandline -ct)
		case :file
			__fish_complete_path (commandline -ct)
		case '*'
			printf '%s\n' $found
	end
end

complete -c natractl -f -a '(__natractl_complete)'
