# bash completion for agent-container; load it with:
#   source <(agent-container completions bash)
_agent_container() {
	local current=${COMP_WORDS[COMP_CWORD]} before=("${COMP_WORDS[@]:1:COMP_CWORD-1}") found word
	COMPREPLY=()
	# To bash, --flag=value is three words.
	if [[ $current == '=' ]]; then
		current=''
	elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == '=' ]]; then
		before=("${before[@]:0:${#before[@]}-1}")
	fi
	found=$("${COMP_WORDS[0]}" --complete "$current" "${before[@]}" 2>/dev/null)
	case $found in
	:files) compopt -o default ;;
	:directories) compopt -o dirnames ;;
	*)
		while read -r word; do
			[[ $word == "$current"* ]] && COMPREPLY+=("$word")
		done <<<"$found"
		;;
	esac
}
complete -F _agent_container agent-container
