# SPDX-License-Identifier: BSD-2-Clause
# Bash completion of natractl(8).

# compgen -W expands its words: a name such as $(reboot), which a pod can give
# to a device, must not get that far.
_natractl_harmless()
{
	grep -xE '[[:alnum:]@._:-]+'
}

_natractl_ids()
{
	natractl list 2>/dev/null | awk 'NR > 1 { print $1 }' | _natractl_harmless
}

# made by `ninja settings`: settings
_natractl_live='--ingress-rate --egress-rate --ingress-burst --egress-burst --heavy-hitter-threshold
	--horizon --fast-pass --fast-pass-share --fast-pass-guard --ingress-packet-rate
	--egress-packet-rate --ingress-connection-rate --egress-connection-rate --group
	--group-weight --group-floor --pace-limit'
_natractl_fixed='--attach-mode --edt-pacing --ingress-mode --sli'

# Prints the words that an option takes; fails if it is no setting.
_natractl_values()
{
	case $1 in
	--fast-pass)
		echo free guarded charged off ;;
	--attach-mode)
		echo auto tcx-podside clsact-podside tcx-hostside clsact-hostside ;;
	--edt-pacing)
		echo auto on off ;;
	--ingress-mode)
		echo police pace ;;
	--sli)
		echo off on ;;
	--ingress-rate | \
	--egress-rate | \
	--ingress-burst | \
	--egress-burst | \
	--heavy-hitter-threshold | \
	--horizon | \
	--fast-pass-share | \
	--fast-pass-guard | \
	--ingress-packet-rate | \
	--egress-packet-rate | \
	--ingress-connection-rate | \
	--egress-connection-rate | \
	--group | \
	--group-weight | \
	--group-floor | \
	--pace-limit)
		;;
	*)
		return 1 ;;
	esac
}
# end of settings

_natractl_words()
{
	local command=$1 previous=$2
	local global='--help --json --verbose --bpffs'
	local live="$_natractl_live --class --group-limits --shaped-subnet --unshaped-subnet"

	case $command$previous in
	install--mode)
		echo auto dropin list bandwidth
		return ;;
	esac
	_natractl_values "$previous" && return
	case $previous in
	--direction)
		echo ingress egress
		return ;;
	--on-error)
		echo continue fail
		return ;;
	--netns)
		ip netns list 2>/dev/null | cut -d' ' -f1 | _natractl_harmless
		return ;;
	--platform)
		echo auto default k3s k3d rke2 microk8s gke openshift
		return ;;
	--pid | --id | --network | --label | --shaped-subnet | --unshaped-subnet | --class | --group-limits | --parent | \
	--watch | --interval | --since | -n | --conf | --runtime-version | --agent)
		return ;;
	esac

	case $command in
	'')
		echo attach set detach list show stats top events group metrics probe gc check \
			upgrade doctor hook install uninstall call version --version "$global" ;;
	attach)
		echo "$global" "$live" --netns --pid --id --network --label "$_natractl_fixed" \
			--replace-bandwidth
		command ls /sys/class/net | _natractl_harmless ;;
	set)
		echo "$global" "$live"
		_natractl_ids ;;
	detach)
		echo "$global" --netns
		_natractl_ids ;;
	group)
		echo "$global" set show remove --ingress-rate --egress-rate --ingress-burst \
			--egress-burst --group-weight --group-floor --parent ;;
	metrics)
		echo "$global" --textfile --verdicts --aggregate
		;;
	stats)
		echo "$global" --watch
		_natractl_ids ;;
	top)
		echo "$global" --direction --once --interval -n
		_natractl_ids ;;
	events)
		echo "$global" --follow --since
		_natractl_ids ;;
	doctor)
		echo "$global" --platform --net-dir --bin-dir --root \
			--runtime-version --agent
		_natractl_ids ;;
	hook)
		echo "$global" --on-error --ingress-rate --egress-rate ;;
	install)
		echo "$global" --mode --platform --net-dir --bin-dir --plugin \
			--conf --network --root --runtime-version --dry-run ;;
	uninstall)
		echo "$global" --platform --net-dir --bin-dir --root --dry-run \
			--force ;;
	show | check | upgrade)
		echo "$global"
		_natractl_ids ;;
	*)
		echo "$global" ;;
	esac
}

_natractl()
{
	local current=${COMP_WORDS[COMP_CWORD]}
	local previous=${COMP_WORDS[COMP_CWORD - 1]}
	local command='' i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--bpffs)
			((i++)) ;;
		-*) ;;
		*)
			command=${COMP_WORDS[i]}
			break ;;
		esac
	done
	case $previous in
	--bpffs | --net-dir | --bin-dir | --root)
		mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
	--plugin)
		mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	*)
		mapfile -t COMPREPLY < <(compgen -W \
			"$(_natractl_words "$command" "$previous")" -- "$current") ;;
	esac
}

complete -F _natractl natractl
