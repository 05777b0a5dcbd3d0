#compdef agent-container
# zsh completion for agent-container; load it with:
#   source <(agent-container completions zsh)
_agent_container() {
	local current=${words[CURRENT]}
	local -a before found
	before=("${(@Q)words[2,CURRENT-1]}")
	if [[ $current == --*=* ]]; then
		before+=("${current%%=*}")
		current=${current#*=}
		compset -P '*='
	fi
	found=("${(@f)$("${words[1]}" --complete "$current" "${(@)before}" 2>/dev/null)}")
	case ${found[1]} in
	'') ;;
	:files)
		compset -P '@' # --task @FILE
		_files
		;;
	:directories) _files -/ ;;
	*) compadd -- "${found[@]}" ;;
	esac
}
if [[ $funcstack[1] == _agent_container ]]; then
	_agent_container "$@"
else
	compdef _agent_container agent-container
fi
