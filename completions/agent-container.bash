# bash completion for agent-container; load it with:
#   source <(agent-container completions bash)
_agent_container() {
	local before=() current='' found word i last=0 cut=''
	COMPREPLY=()
	# To bash, --flag=value is three words, and so is provider:name.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if ((i > 1)) && [[ $word == ':' || ${COMP_WORDS[i - 1]} == ':' ]]; then
			before[last]+=$word
			cut=${before[last]%:*}:
		else
			((i == 1)) || last=$((last + 1))
			before[last]=$word
			cut=''
		fi
	done
	current=${before[last]}
	before=("${before[@]:0:last}")
	if [[ $current == '=' ]]; then
		current=''
	elif ((last > 0)) && [[ ${before[last - 1]} == '=' ]]; then
		before=("${before[@]:0:last-1}")
	fi
	found=$("${COMP_WORDS[0]}" --complete "$current" "${before[@]}" 2>/dev/null)
	case $found in
	:files) compopt -o default ;;
	:directories) compopt -o dirnames ;;
	*)
		while read -r word; do
			[[ $word == "$current"* ]] && COMPREPLY+=("${word#"$cut"}")
		done <<<"$found"
		;;
	esac
}
complete -F _agent_container agent-container
