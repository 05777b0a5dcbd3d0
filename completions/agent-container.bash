# bash completion for agent-container; load it with:
#   source <(agent-container completions bash)
_agent_container() {
	local current=${COMP_WORDS[COMP_CWORD]} words
	words=$("${COMP_WORDS[@]:0:COMP_CWORD}" --generate-bash-completion 2>/dev/null)
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o bashdefault -o default -F _agent_container agent-container
