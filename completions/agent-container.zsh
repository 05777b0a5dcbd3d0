#compdef agent-container
# zsh completion for agent-container; load it with:
#   source <(agent-container completions zsh)
_agent_container() {
	local -a words_found
	words_found=("${(@f)$("${(@)words[1,CURRENT-1]}" --generate-bash-completion 2>/dev/null)}")
	if [[ -n ${words_found[1]} ]]; then
		compadd -- "${words_found[@]}"
	else
		_files
	fi
}
if [[ $funcstack[1] == _agent_container ]]; then
	_agent_container "$@"
else
	compdef _agent_container agent-container
fi
